#include <algorithm>

#include "trainer/compute/cpu/layers/convolution.h"
#include "trainer/compute/cpu/layers/surrounded_image.h"

namespace muster::compute::cpu {
namespace {

// If a window moves by one place, each of its rows covers window_width * channels floats from a
// place on, and at the next position the same number from the next place on. So each row of the
// window gives a product of matrices that overlap in memory, and there are no patches:
//   forward: y[row, x] = sum over r of image[row + r, x ...] * kernel[r];
//   weights: kernel[r]' += sum over all places of image[place + r rows ...] * dy[place];
//   input: the same as forward, of dy surrounded by zeros with the kernel turned round.
// The image is surrounded by its zeros first (`padded_width` places a row). dy has the same number
// of places a row: the zeros after a row are also the zeros before the next row.
class UnitConvolution : public ConvolutionOperation {
 public:
  UnitConvolution(const Conv2d& layer, const Node& node, Context& context)
      : ConvolutionOperation(layer, node, context, {}),
        row_depth_(sliding.window_width * sliding.channels),
        padded_width_(sliding.out_width + sliding.window_width - 1),
        lead_((sliding.window_height - 1) * padded_width_ + sliding.window_width - 1),
        image_(context, in, sliding, sliding.out_height + sliding.window_height - 1,
               padded_width_) {
    if (out.needs_gradient) spread_ = context.add_own(spread_floats());
    if (in.half || out.half) row_ = context.add_own(row_floats());
  }

 private:
  int64_t spread_floats() const {
    return (2 * lead_ + sliding.out_height * padded_width_) * filters;
  }

  int64_t row_floats() const {
    return std::max(sliding.out_width * filters, sliding.width * sliding.channels);
  }
  float* row_of(TeamThread thread) const { return context.own(row_, row_floats(), thread); }

  void forward_lines(const Step& step, TeamThread thread, const Lines& lines) const override {
    const float* w = step.parameters + kernel_offset;
    const float* x = image_.read(thread, lines.sample, lines.begin, lines.end);
    const int64_t count = sliding.out_width * filters;
    for (int64_t row = lines.begin; row < lines.end; ++row) {
      const Numbers to = context.data(out, lines.sample) + row * count;
      float* y = begin_write(to, row_of(thread), count, false);
      for (int64_t r = 0; r < sliding.window_height; ++r) {
        kernels.gemm({sliding.out_width, filters, row_depth_,
                      x + (row + r) * padded_width_ * sliding.channels, sliding.channels, 1,
                      w + r * row_depth_ * filters, filters, y, filters, r > 0});
      }
      finish(step, thread, to, y, sliding.out_width);
    }
  }

  // [window_height][window_width, from the last column to the first][filters, channels]. Each
  // thread writes some places of the window.
  void rearrange(const Step& step, TeamThread thread) const override {
    const int64_t wide = sliding.window_width, block = sliding.channels * filters;
    const int64_t places = sliding.window_height * wide;
    for (int64_t i = thread.begin(places); i < thread.end(places); ++i) {
      const int64_t mirrored = i / wide * wide + wide - 1 - i % wide;
      kernels.transpose(sliding.channels, filters, step.parameters + kernel_offset + i * block,
                        filters, context.arena.floats(rearranged) + mirrored * block,
                        sliding.channels);
    }
  }

  void backward_samples(TeamThread thread, int64_t begin, int64_t end,
                        bool accumulate) const override {
    for (int64_t i = begin; i < end; ++i) backward_sample(thread, i, accumulate);
  }

  void backward_sample(TeamThread thread, int64_t sample, bool accumulate) const {
    const Sliding& s = sliding;
    float* dy = context.own(spread_, spread_floats(), thread);
    for (int64_t row = 0; row < s.out_height; ++row) {
      output_gradient(sample, row * s.out_width, (row + 1) * s.out_width,
                      dy + (lead_ + row * padded_width_) * filters);
    }
    if (weights) weight_gradient(thread, sample, dy);
    if (in.needs_gradient) input_gradient(thread, sample, dy, accumulate);
  }

  // The places between the rows of dy are zero, so they add nothing.
  void weight_gradient(TeamThread thread, int64_t sample, const float* dy) const {
    const Sliding& s = sliding;
    const float* x = image_.read(thread, sample, 0, s.out_height);
    const int64_t places = (s.out_height - 1) * padded_width_ + s.out_width;
    const float* first = dy + lead_ * filters;
    for (int64_t r = 0; r < s.window_height; ++r) {
      kernels.gemm({row_depth_, filters, places, x + r * padded_width_ * s.channels, 1, s.channels,
                    first, filters, weights->of(thread) + r * row_depth_ * filters, filters, true});
    }
    bias_gradient(thread, first, places);
  }

  void input_gradient(TeamThread thread, int64_t sample, const float* dy, bool accumulate) const {
    const Sliding& s = sliding;
    const float* turned = context.arena.floats(rearranged);
    const int64_t count = s.width * s.channels;
    for (int64_t y = 0; y < s.height; ++y) {
      const Numbers to = context.gradient(in, sample) + y * count;
      float* dx = begin_write(to, row_of(thread), count, accumulate);
      for (int64_t r = 0; r < s.window_height; ++r) {
        const int64_t row = y + s.top - r + s.window_height - 1;
        kernels.gemm({s.width, s.channels, s.window_width * filters,
                      dy + (row * padded_width_ + s.left) * filters, filters, 1,
                      turned + r * row_depth_ * filters, s.channels, dx, s.channels,
                      accumulate || r > 0});
      }
      finish_gradient(thread, context.data(in, sample) + y * count, to, dx, s.width);
    }
  }

  const int64_t row_depth_;  // floats under a row of the window
  const int64_t padded_width_;
  const int64_t lead_;  // zeros before dy, in places
  const SurroundedImage image_;
  Block spread_;  // each thread's dy with its zeros
  Block row_;     // each thread's row of floats before rounding to bfloat16
};

}  // namespace

std::unique_ptr<Operation> make_unit_convolution(const Conv2d& layer, const Node& node,
                                                 Context& context) {
  return std::make_unique<UnitConvolution>(layer, node, context);
}

}  // namespace muster::compute::cpu
