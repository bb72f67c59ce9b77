#include <algorithm>

#include "trainer/compute/cpu/layers/convolution.h"

namespace muster::compute::cpu {
namespace {

// Patches are made a tile at a time, which stays in the second-level cache. The kernel is a matrix
// of [window and channels, filters].
class PatchConvolution : public ConvolutionOperation {
 public:
  PatchConvolution(const Conv2d& layer, const Node& node, Context& context)
      : ConvolutionOperation(layer, node, context),
        pointwise_(depth == sliding.channels && sliding.down == 1 && sliding.right == 1),
        pairs_(context.pairs && (in.half || out.half)),
        tile_places_(std::min(std::clamp<int64_t>(kTileFloats / depth, kLeastPlaces, kMostPlaces),
                              context.max_rows * places_of(sliding))) {
    if (!pointwise_ || in.normalized) tile_ = context.add_own(tile_places_ * depth);
    if (!pointwise_ && in.normalized) image_ = context.add_own(in.width);
    if (out.normalized || activation != Activation::linear)
      gradient_tile_ = context.add_own(tile_places_ * filters);
    if (out.half) output_tile_ = context.add_own(tile_places_ * filters);
    if (in.half && in.needs_gradient) input_gradient_ = context.add_own(gradient_floats());
    if (!pairs_) return;
    left_pairs_ = context.add_own(left_floats());
    right_pairs_ = context.add_own(right_floats());
    packed_ = context.arena.add(half_of(depth) * filters * 4);
    if (in.needs_gradient) turned_ = context.arena.add(half_of(filters) * depth * 4);
  }

  void forward(Program& program) override {
    if (pairs_) {
      program.add(name + " pairs", {writes(packed_, Share::own)},
                  [this](const Step& step, TeamThread thread) { pack_kernel(step, thread); });
    }
    ConvolutionOperation::forward(program);
  }

 private:
  static constexpr int64_t kTileFloats = 64 * 1024;
  static constexpr int64_t kLeastPlaces = 96;
  static constexpr int64_t kMostPlaces = 512;

  // Of numbers, as pairs.
  static int64_t half_of(int64_t count) { return (count + 1) / 2; }

  float* tile_of(TeamThread thread) const {
    return context.own(tile_, tile_places_ * depth, thread);
  }
  // Single places give the gradient of a tile, others that of a whole sample.
  int64_t gradient_floats() const { return pointwise_ ? tile_places_ * depth : in.width; }

  // Returns a sample whose rows under output rows [begin, end) can be read; null if single places
  // are read.
  const float* image(int64_t sample, int64_t begin, int64_t end, TeamThread thread) const {
    if (pointwise_) return nullptr;
    const Numbers x = context.data(in, sample);
    if (!in.normalized) return x.floats();
    const Sliding& s = sliding;
    float* image = context.own(image_, in.width, thread);
    const int64_t first = std::clamp<int64_t>(begin * s.down - s.top, 0, s.height);
    const int64_t last =
        std::clamp<int64_t>((end - 1) * s.down - s.top + s.window_height, first, s.height);
    const int64_t row = s.width * s.channels;
    in.normalized->values(x + first * row, image + first * row, (last - first) * s.width);
    return image;
  }

  // Returns the patches of places [begin, end) of a sample as a matrix with rows of depth floats.
  // `image` is what image() has returned for them.
  const float* patches(int64_t sample, const float* image, int64_t begin, int64_t end,
                       TeamThread thread) const {
    const Numbers x = context.data(in, sample) + begin * depth;
    if (pointwise_ && !in.normalized) return x.floats();
    float* tile = tile_of(thread);
    if (pointwise_) {
      in.normalized->values(x, tile, end - begin);
    } else {
      kernels.gather_patches({sliding, begin, end, const_cast<float*>(image), tile, depth});
    }
    return tile;
  }

  void forward_lines(const Step& step, TeamThread thread, const Lines& lines) const override {
    const float* w = step.parameters + kernel_offset;
    const float* x = image(lines.sample, lines.begin, lines.end, thread);
    const int64_t last = lines.end * sliding.out_width;
    for (int64_t at = lines.begin * sliding.out_width; at < last; at += tile_places_) {
      const int64_t end = std::min(at + tile_places_, last);
      const Numbers to = context.data(out, lines.sample) + at * filters;
      const int64_t count = (end - at) * filters;
      float* y = begin_write(to, output_tile(thread), count, false);
      const float* rows = patches(lines.sample, x, at, end, thread);
      if (pairs_) {
        float* left = left_of(thread);
        kernels.pack_rows(end - at, depth, rows, depth, left, half_of(depth));
        kernels.gemm_pairs({end - at, filters, half_of(depth), left, half_of(depth), 1,
                            context.arena.floats(packed_), filters, y, filters});
      } else {
        kernels.gemm({end - at, filters, depth, rows, depth, 1, w, filters, y, filters});
      }
      end_write(to, y, count);
      finish(step, thread, to, end - at);
    }
  }

  float* output_tile(TeamThread thread) const {
    return context.own(output_tile_, tile_places_ * filters, thread);
  }

  std::vector<Access> more_accesses() const override {
    if (!pairs_) return {};
    return {reads(packed_, Share::all)};
  }

  // [filters, depth], of which each thread writes some columns.
  void rearrange(const Step& step, TeamThread thread) const override {
    const int64_t begin = thread.begin(depth, kLine), end = thread.end(depth, kLine);
    float* turned = context.arena.floats(rearranged) + begin;
    kernels.transpose(end - begin, filters, step.parameters + kernel_offset + begin * filters,
                      filters, turned, depth);
    if (pairs_)
      kernels.pack_row_pairs(filters, end - begin, turned, depth,
                             context.arena.floats(turned_) + begin, depth);
  }

  // [depth / 2, filters] pairs, of which each thread writes some rows.
  void pack_kernel(const Step& step, TeamThread thread) const {
    const int64_t begin = thread.begin(depth, 2), end = thread.end(depth, 2);
    if (begin < end)
      kernels.pack_row_pairs(end - begin, filters,
                             step.parameters + kernel_offset + begin * filters, filters,
                             context.arena.floats(packed_) + begin / 2 * filters, filters);
  }

  void backward_sample(TeamThread thread, int64_t sample, bool accumulate) const override {
    const int64_t places = places_of(sliding);
    const bool whole = in.needs_gradient && !pointwise_;
    const Numbers to = in.needs_gradient ? context.gradient(in, sample) : Numbers{};
    const float* x = weights ? image(sample, 0, sliding.out_height, thread) : nullptr;
    float* dx = whole ? begin_write(to, gradient_memory(thread), in.width, accumulate) : nullptr;
    if (whole && !accumulate) std::fill_n(dx, in.width, 0.0f);
    for (int64_t at = 0; at < places; at += tile_places_) {
      const int64_t end = std::min(at + tile_places_, places);
      const float* dy = raw_gradient(thread, sample, at, end);
      if (weights) {
        weight_gradient(thread, patches(sample, x, at, end, thread), dy, end - at);
        bias_gradient(thread, dy, end - at);
      }
      if (whole) {
        input_gradient(thread, dy, end - at, tile_of(thread), false);
        kernels.scatter_patches({sliding, at, end, dx, tile_of(thread), depth});
      } else if (in.needs_gradient) {
        tile_gradient(thread, sample, dy, at, end, accumulate);
      }
    }
    if (!whole) return;
    end_write(to, dx, in.width);
    if (sums)
      in.normalized->add_sums(thread, context.data(in, sample), to, sliding.height * sliding.width);
  }

  const float* raw_gradient(TeamThread thread, int64_t sample, int64_t begin, int64_t end) const {
    if (!gradient_tile_) return context.gradient(out, sample).floats() + begin * filters;
    float* tile = context.own(gradient_tile_, tile_places_ * filters, thread);
    output_gradient(sample, begin, end, tile);
    return tile;
  }

  float* gradient_memory(TeamThread thread) const {
    return context.own(input_gradient_, gradient_floats(), thread);
  }

  // Adds what some places give to the weights' gradient.
  void weight_gradient(TeamThread thread, const float* patches, const float* dy,
                       int64_t places) const {
    float* to = weights->of(thread);
    if (!pairs_) {
      return kernels.gemm(
          {depth, filters, places, patches, 1, depth, dy, filters, to, filters, true});
    }
    float* left = left_of(thread);
    float* right = right_of(thread);
    kernels.pack_row_pairs(places, depth, patches, depth, left, depth);
    kernels.pack_row_pairs(places, filters, dy, filters, right, filters);
    kernels.gemm_pairs(
        {depth, filters, half_of(places), left, 1, depth, right, filters, to, filters, true});
  }

  // Writes the gradient of the patches of some places, or adds to it.
  void input_gradient(TeamThread thread, const float* dy, int64_t places, float* to,
                      bool accumulate) const {
    if (!pairs_) {
      return kernels.gemm({places, depth, filters, dy, filters, 1, context.arena.floats(rearranged),
                           depth, to, depth, accumulate});
    }
    float* rows = right_of(thread);
    kernels.pack_rows(places, filters, dy, filters, rows, half_of(filters));
    kernels.gemm_pairs({places, depth, half_of(filters), rows, half_of(filters), 1,
                        context.arena.floats(turned_), depth, to, depth, accumulate});
  }

  int64_t left_floats() const {
    return std::max(tile_places_ * half_of(depth), half_of(tile_places_) * depth);
  }
  int64_t right_floats() const {
    return std::max(tile_places_ * half_of(filters), half_of(tile_places_) * filters);
  }
  float* left_of(TeamThread thread) const {
    return context.own(left_pairs_, left_floats(), thread);
  }
  float* right_of(TeamThread thread) const {
    return context.own(right_pairs_, right_floats(), thread);
  }

  // Does so for single places, where that is the gradient of the input.
  void tile_gradient(TeamThread thread, int64_t sample, const float* dy, int64_t begin, int64_t end,
                     bool accumulate) const {
    const Numbers to = context.gradient(in, sample) + begin * depth;
    const int64_t count = (end - begin) * depth;
    float* dx = begin_write(to, gradient_memory(thread), count, accumulate);
    input_gradient(thread, dy, end - begin, dx, accumulate);
    end_write(to, dx, count);
    if (sums)
      in.normalized->add_sums(thread, context.data(in, sample) + begin * depth, to, end - begin);
  }

  const bool pointwise_;
  const bool pairs_;  // products of pairs of bfloat16
  const int64_t tile_places_;
  Block tile_;           // each thread's patches, or their gradient
  Block image_;          // each thread's sample, where its values must be computed first
  Block gradient_tile_;  // each thread's gradient of the raw output
  // Each thread's floats that become bfloat16.
  Block output_tile_, input_gradient_;
  // Each thread's factors of a product as pairs, and the kernel's, as it is and turned.
  Block left_pairs_, right_pairs_, packed_, turned_;
};

}  // namespace

std::unique_ptr<Operation> make_patch_convolution(const Conv2d& layer, const Node& node,
                                                  Context& context) {
  return std::make_unique<PatchConvolution>(layer, node, context);
}

}  // namespace muster::compute::cpu
