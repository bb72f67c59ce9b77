#include <algorithm>

#include "trainer/compute/cpu/convolution.h"

namespace muster::compute::cpu {
namespace {

// Patches are made a tile at a time, which stays in the second-level cache. The kernel is a matrix
// of [window and channels, filters].
class PatchConvolution : public ConvolutionOperation {
 public:
  PatchConvolution(const Conv2d& layer, const Node& node, Context& context)
      : ConvolutionOperation(layer, node, context),
        pointwise_(depth_ == sliding_.channels && sliding_.down == 1 && sliding_.right == 1),
        tile_places_(std::min(std::clamp<int64_t>(kTileFloats / depth_, kLeastPlaces, kMostPlaces),
                              context.max_rows * places_of(sliding_))) {
    if (!pointwise_ || in_.normalized) tile_ = context.add_own(tile_places_ * depth_);
    if (!pointwise_ && in_.normalized) image_ = context.add_own(in_.width);
    if (out_.normalized || activation_ != Activation::linear)
      gradient_tile_ = context.add_own(tile_places_ * filters_);
  }

 private:
  static constexpr int64_t kTileFloats = 64 * 1024;
  static constexpr int64_t kLeastPlaces = 96;
  static constexpr int64_t kMostPlaces = 512;

  float* tile_of(TeamThread thread) const {
    return context_.own(tile_, tile_places_ * depth_, thread);
  }

  // Returns a sample whose rows under output rows [begin, end) can be read, unless single places
  // are read.
  const float* image(int64_t sample, int64_t begin, int64_t end, TeamThread thread) const {
    const float* x = data(in_, sample);
    if (pointwise_ || !in_.normalized) return x;
    const Sliding& s = sliding_;
    float* image = context_.own(image_, in_.width, thread);
    const int64_t first = std::clamp<int64_t>(begin * s.down - s.top, 0, s.height);
    const int64_t last =
        std::clamp<int64_t>((end - 1) * s.down - s.top + s.window_height, first, s.height);
    const int64_t row = s.width * s.channels;
    in_.normalized->values(x + first * row, image + first * row, (last - first) * s.width);
    return image;
  }

  // Returns the patches of places [begin, end) of an image as a matrix with rows of depth_ floats.
  const float* patches(const float* x, int64_t begin, int64_t end, TeamThread thread) const {
    if (pointwise_ && !in_.normalized) return x + begin * depth_;
    float* tile = tile_of(thread);
    if (pointwise_) {
      in_.normalized->values(x + begin * depth_, tile, end - begin);
    } else {
      kernels_.gather_patches({sliding_, begin, end, const_cast<float*>(x), tile, depth_});
    }
    return tile;
  }

  void forward_lines(const Step& step, TeamThread thread, const Lines& lines) const override {
    const float* w = step.parameters + kernel_offset_;
    const float* x = image(lines.sample, lines.begin, lines.end, thread);
    const int64_t last = lines.end * sliding_.out_width;
    for (int64_t at = lines.begin * sliding_.out_width; at < last; at += tile_places_) {
      const int64_t end = std::min(at + tile_places_, last);
      float* y = data(out_, lines.sample) + at * filters_;
      kernels_.gemm({end - at, filters_, depth_, patches(x, at, end, thread), depth_, 1, w,
                     filters_, y, filters_});
      finish(step, thread, y, end - at);
    }
  }

  // [filters, depth], of which each thread writes some columns.
  void rearrange(const Step& step, TeamThread thread) const override {
    const int64_t begin = thread.begin(depth_, kLine), end = thread.end(depth_, kLine);
    kernels_.transpose(end - begin, filters_, step.parameters + kernel_offset_ + begin * filters_,
                       filters_, context_.arena.floats(rearranged_) + begin, depth_);
  }

  void backward_sample(TeamThread thread, int64_t sample, bool accumulate) const override {
    const int64_t places = places_of(sliding_);
    const float* x = weights_ ? image(sample, 0, sliding_.out_height, thread) : nullptr;
    float* dx = in_.needs_gradient ? gradient(in_, sample) : nullptr;
    if (dx && !pointwise_ && !accumulate) std::fill_n(dx, in_.width, 0.0f);
    for (int64_t at = 0; at < places; at += tile_places_) {
      const int64_t end = std::min(at + tile_places_, places);
      const float* dy = raw_gradient(thread, sample, at, end);
      if (weights_) {
        kernels_.gemm({depth_, filters_, end - at, patches(x, at, end, thread), 1, depth_, dy,
                       filters_, weights_->of(thread), filters_, true});
        bias_gradient(thread, dy, end - at);
      }
      if (dx) input_gradient(thread, sample, dy, at, end, accumulate);
    }
    if (sums_ && !pointwise_)
      in_.normalized->add_sums(thread, data(in_, sample), dx, sliding_.height * sliding_.width);
  }

  const float* raw_gradient(TeamThread thread, int64_t sample, int64_t begin, int64_t end) const {
    if (!gradient_tile_) return gradient(out_, sample) + begin * filters_;
    float* tile = context_.own(gradient_tile_, tile_places_ * filters_, thread);
    output_gradient(sample, begin, end, tile);
    return tile;
  }

  void input_gradient(TeamThread thread, int64_t sample, const float* dy, int64_t begin,
                      int64_t end, bool accumulate) const {
    float* dx = gradient(in_, sample);
    Gemm gemm{end - begin,
              depth_,
              filters_,
              dy,
              filters_,
              1,
              context_.arena.floats(rearranged_),
              depth_,
              dx + begin * depth_,
              depth_,
              accumulate};
    if (pointwise_) {
      kernels_.gemm(gemm);
      if (sums_)
        in_.normalized->add_sums(thread, data(in_, sample) + begin * depth_, gemm.c, end - begin);
      return;
    }
    gemm.c = tile_of(thread);
    gemm.accumulate = false;
    kernels_.gemm(gemm);
    kernels_.scatter_patches({sliding_, begin, end, dx, gemm.c, depth_});
  }

  const bool pointwise_;
  const int64_t tile_places_;
  Block tile_;           // each thread's patches, or their gradient
  Block image_;          // each thread's sample, where its values must be computed first
  Block gradient_tile_;  // each thread's gradient of the raw output
};

}  // namespace

std::unique_ptr<Operation> make_patch_convolution(const Conv2d& layer, const Node& node,
                                                  Context& context) {
  return std::make_unique<PatchConvolution>(layer, node, context);
}

}  // namespace muster::compute::cpu
