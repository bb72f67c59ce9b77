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
        pointwise_(depth == sliding.channels && sliding.down == 1 && sliding.right == 1),
        tile_places_(std::min(std::clamp<int64_t>(kTileFloats / depth, kLeastPlaces, kMostPlaces),
                              context.max_rows * places_of(sliding))) {
    if (!pointwise_ || in.normalized) tile_ = context.add_own(tile_places_ * depth);
    if (!pointwise_ && in.normalized) image_ = context.add_own(in.width);
    if (out.normalized || activation != Activation::linear)
      gradient_tile_ = context.add_own(tile_places_ * filters);
  }

 private:
  static constexpr int64_t kTileFloats = 64 * 1024;
  static constexpr int64_t kLeastPlaces = 96;
  static constexpr int64_t kMostPlaces = 512;

  float* tile_of(TeamThread thread) const {
    return context.own(tile_, tile_places_ * depth, thread);
  }

  // Returns a sample whose rows under output rows [begin, end) can be read, unless single places
  // are read.
  const float* image(int64_t sample, int64_t begin, int64_t end, TeamThread thread) const {
    const float* x = data(in, sample);
    if (pointwise_ || !in.normalized) return x;
    const Sliding& s = sliding;
    float* image = context.own(image_, in.width, thread);
    const int64_t first = std::clamp<int64_t>(begin * s.down - s.top, 0, s.height);
    const int64_t last =
        std::clamp<int64_t>((end - 1) * s.down - s.top + s.window_height, first, s.height);
    const int64_t row = s.width * s.channels;
    in.normalized->values(x + first * row, image + first * row, (last - first) * s.width);
    return image;
  }

  // Returns the patches of places [begin, end) of an image as a matrix with rows of depth floats.
  const float* patches(const float* x, int64_t begin, int64_t end, TeamThread thread) const {
    if (pointwise_ && !in.normalized) return x + begin * depth;
    float* tile = tile_of(thread);
    if (pointwise_) {
      in.normalized->values(x + begin * depth, tile, end - begin);
    } else {
      kernels.gather_patches({sliding, begin, end, const_cast<float*>(x), tile, depth});
    }
    return tile;
  }

  void forward_lines(const Step& step, TeamThread thread, const Lines& lines) const override {
    const float* w = step.parameters + kernel_offset;
    const float* x = image(lines.sample, lines.begin, lines.end, thread);
    const int64_t last = lines.end * sliding.out_width;
    for (int64_t at = lines.begin * sliding.out_width; at < last; at += tile_places_) {
      const int64_t end = std::min(at + tile_places_, last);
      float* y = data(out, lines.sample) + at * filters;
      kernels.gemm({end - at, filters, depth, patches(x, at, end, thread), depth, 1, w, filters, y,
                    filters});
      finish(step, thread, y, end - at);
    }
  }

  // [filters, depth], of which each thread writes some columns.
  void rearrange(const Step& step, TeamThread thread) const override {
    const int64_t begin = thread.begin(depth, kLine), end = thread.end(depth, kLine);
    kernels.transpose(end - begin, filters, step.parameters + kernel_offset + begin * filters,
                      filters, context.arena.floats(rearranged) + begin, depth);
  }

  void backward_sample(TeamThread thread, int64_t sample, bool accumulate) const override {
    const int64_t places = places_of(sliding);
    const float* x = weights ? image(sample, 0, sliding.out_height, thread) : nullptr;
    float* dx = in.needs_gradient ? gradient(in, sample) : nullptr;
    if (dx && !pointwise_ && !accumulate) std::fill_n(dx, in.width, 0.0f);
    for (int64_t at = 0; at < places; at += tile_places_) {
      const int64_t end = std::min(at + tile_places_, places);
      const float* dy = raw_gradient(thread, sample, at, end);
      if (weights) {
        kernels.gemm({depth, filters, end - at, patches(x, at, end, thread), 1, depth, dy, filters,
                      weights->of(thread), filters, true});
        bias_gradient(thread, dy, end - at);
      }
      if (dx) input_gradient(thread, sample, dy, at, end, accumulate);
    }
    if (sums && !pointwise_)
      in.normalized->add_sums(thread, data(in, sample), dx, sliding.height * sliding.width);
  }

  const float* raw_gradient(TeamThread thread, int64_t sample, int64_t begin, int64_t end) const {
    if (!gradient_tile_) return gradient(out, sample) + begin * filters;
    float* tile = context.own(gradient_tile_, tile_places_ * filters, thread);
    output_gradient(sample, begin, end, tile);
    return tile;
  }

  void input_gradient(TeamThread thread, int64_t sample, const float* dy, int64_t begin,
                      int64_t end, bool accumulate) const {
    float* dx = gradient(in, sample);
    Gemm gemm{end - begin,
              depth,
              filters,
              dy,
              filters,
              1,
              context.arena.floats(rearranged),
              depth,
              dx + begin * depth,
              depth,
              accumulate};
    if (pointwise_) {
      kernels.gemm(gemm);
      if (sums)
        in.normalized->add_sums(thread, data(in, sample) + begin * depth, gemm.c, end - begin);
      return;
    }
    gemm.c = tile_of(thread);
    gemm.accumulate = false;
    kernels.gemm(gemm);
    kernels.scatter_patches({sliding, begin, end, dx, gemm.c, depth});
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
