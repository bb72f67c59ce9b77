#include <algorithm>
#include <array>

#include "trainer/compute/cpu/layers/convolution.h"

namespace muster::compute::cpu {
namespace {

bool is_single(const Window& window) {
  return window.size == std::array<int64_t, 2>{1, 1} &&
         window.strides == std::array<int64_t, 2>{1, 1};
}

// Patches are made one tile at a time, and a tile stays in the second-level cache. The kernel is a
// matrix of [window and channels, filters].
class PatchConvolution : public ConvolutionOperation {
 public:
  PatchConvolution(const Conv2d& layer, const Node& node, Context& context)
      : ConvolutionOperation(layer, node, context, {.single = is_single(layer.window)}),
        pointwise_(is_single(layer.window)),
        pairs_(context.pairs && (in.half || out.half)),
        tile_places_(std::min(std::clamp<int64_t>(kTileFloats / depth, kLeastPlaces, kMostPlaces),
                              context.max_rows * places_of(sliding))) {
    if (!pointwise_ || (in.normalized && !pairs_)) tile_ = context.add_own(tile_places_ * depth);
    if (!pointwise_ && in.normalized) image_ = context.add_own(in.width);
    if (out.normalized ? !pairs_ : activation != Activation::linear)
      gradient_tile_ = context.add_own(tile_places_ * filters);
    if (out.half) output_tile_ = context.add_own(tile_places_ * filters);
    if (in.half && in.needs_gradient) input_gradient_ = context.add_own(gradient_floats());
    if (!pairs_) return;
    left_pairs_ = context.add_own(left_floats());
    if (weights) right_pairs_ = context.add_own(right_floats());
    if (in.needs_gradient) rows_ = context.add_own(row_floats());
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

  // Returns the number of pairs for `count` numbers.
  static int64_t half_of(int64_t count) { return (count + 1) / 2; }

  float* tile_of(TeamThread thread) const {
    return context.own(tile_, tile_places_ * depth, thread);
  }
  // A convolution of single places computes the gradient of a tile; other convolutions, the
  // gradient of a whole sample.
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
  // `image` is the result of image() for these places.
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
      if (pairs_) {
        pack_patches(thread, lines.sample, x, at, end);
        const int64_t ld = half_of(depth);
        kernels.gemm_pairs({end - at, filters, ld, left_of(thread), ld, 1,
                            context.arena.floats(packed_), filters, y, filters});
      } else {
        kernels.gemm({end - at, filters, depth, patches(lines.sample, x, at, end, thread), depth, 1,
                      w, filters, y, filters});
      }
      finish(step, thread, to, y, end - at);
    }
  }

  float* output_tile(TeamThread thread) const {
    return context.own(output_tile_, tile_places_ * filters, thread);
  }

  std::vector<Access> more_accesses() const override {
    if (!pairs_) return {};
    return {reads(packed_, Share::all)};
  }

  // Writes [filters, depth]; each thread writes some columns. With pairs, a thread's rows of the
  // kernel become pairs in `rearranged`, and these are transposed into turned_, [filters / 2,
  // depth]. Phases that read turned_ declare an access to `rearranged`.
  void rearrange(const Step& step, TeamThread thread) const override {
    const int64_t begin = thread.begin(depth, kLine), end = thread.end(depth, kLine);
    const float* w = step.parameters + kernel_offset + begin * filters;
    float* to = context.arena.floats(rearranged);
    if (!pairs_) return kernels.transpose(end - begin, filters, w, filters, to + begin, depth);
    const int64_t ld = half_of(filters);
    kernels.pack_rows(end - begin, filters, w, filters, to + begin * ld, ld);
    kernels.transpose(end - begin, ld, to + begin * ld, ld, context.arena.floats(turned_) + begin,
                      depth);
  }

  // Writes [depth / 2, filters] pairs; each thread writes some rows.
  void pack_kernel(const Step& step, TeamThread thread) const {
    const int64_t begin = thread.begin(depth, 2), end = thread.end(depth, 2);
    if (begin < end)
      kernels.pack_row_pairs(end - begin, filters,
                             step.parameters + kernel_offset + begin * filters, filters,
                             context.arena.floats(packed_) + begin / 2 * filters, filters);
  }

  void backward_samples(TeamThread thread, int64_t begin, int64_t end,
                        bool accumulate) const override {
    const int64_t places = places_of(sliding);
    if (joined) return backward_places(thread, begin, (end - begin) * places, accumulate);
    for (int64_t i = begin; i < end; ++i) backward_places(thread, i, places, accumulate);
  }

  // The places are counted from the first one of a sample.
  void backward_places(TeamThread thread, int64_t sample, int64_t places, bool accumulate) const {
    const bool whole = in.needs_gradient && !pointwise_;
    const Numbers to = in.needs_gradient ? context.gradient(in, sample) : Numbers{};
    const float* x = weights ? image(sample, 0, sliding.out_height, thread) : nullptr;
    float* dx = whole ? begin_write(to, gradient_memory(thread), in.width, accumulate) : nullptr;
    if (whole && !accumulate) std::fill_n(dx, in.width, 0.0f);
    for (int64_t at = 0; at < places; at += tile_places_) {
      const int64_t end = std::min(at + tile_places_, places);
      const float* dy = pairs_ ? nullptr : raw_gradient(thread, sample, at, end);
      if (pairs_) {
        pack_tile(thread, sample, x, at, end);
        if (weights) multiply_weights(thread, end - at);
      } else if (weights) {
        kernels.gemm({depth, filters, end - at, patches(sample, x, at, end, thread), 1, depth, dy,
                      filters, weights->of(thread), filters, true});
        bias_gradient(thread, dy, end - at);
      }
      if (whole) {
        input_gradient(thread, dy, end - at, tile_of(thread), false);
        kernels.scatter_patches({sliding, at, end, dx, tile_of(thread), depth});
      } else if (in.needs_gradient) {
        tile_gradient(thread, sample, dy, at, end, accumulate);
      }
    }
    if (whole)
      finish_gradient(thread, context.data(in, sample), to, dx, sliding.height * sliding.width);
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

  // Pairs are made for a few places at a time, so that the floats stay in the first-level cache.
  template <typename Function>
  static void for_stretches(int64_t begin, int64_t end, Function function) {
    constexpr int64_t kPlaces = 8;
    for (int64_t at = begin; at < end; at += kPlaces) function(at, std::min(at + kPlaces, end));
  }

  // Makes the pairs of the left factor of a tile's forward product.
  void pack_patches(TeamThread thread, int64_t sample, const float* image, int64_t begin,
                    int64_t end) const {
    float* left = left_of(thread);
    if (pointwise_ && in.normalized) {
      const Numbers x = context.data(in, sample) + begin * depth;
      return in.normalized->value_pairs(x, left, nullptr, end - begin);
    }
    const int64_t ld = half_of(depth);
    for_stretches(begin, end, [&](int64_t p, int64_t q) {
      const float* rows = patches(sample, image, p, q, thread);
      kernels.pack_rows(q - p, depth, rows, depth, left + (p - begin) * ld, ld);
    });
  }

  // Makes the pairs of the factors of a tile's backward products.
  void pack_tile(TeamThread thread, int64_t sample, const float* image, int64_t begin,
                 int64_t end) const {
    pack_gradient(thread, sample, begin, end);
    if (!weights) return;
    float* left = left_of(thread);
    if (pointwise_ && in.normalized) {
      const Numbers x = context.data(in, sample) + begin * depth;
      return in.normalized->value_pairs(x, nullptr, left, end - begin);
    }
    for_stretches(begin, end, [&](int64_t p, int64_t q) {
      kernels.pack_row_pairs(q - p, depth, patches(sample, image, p, q, thread), depth,
                             left + (p - begin) / 2 * depth, depth);
    });
  }

  void pack_gradient(TeamThread thread, int64_t sample, int64_t begin, int64_t end) const {
    float* rows = in.needs_gradient ? rows_of(thread) : nullptr;
    float* right = weights ? right_of(thread) : nullptr;
    if (out.normalized) {
      const Numbers y = context.data(out, sample) + begin * filters;
      const Numbers dy = context.gradient(out, sample) + begin * filters;
      return out.normalized->gradient_pairs(y, dy, rows, right, end - begin);
    }
    const int64_t ld = half_of(filters);
    for_stretches(begin, end, [&](int64_t p, int64_t q) {
      const float* dy = raw_gradient(thread, sample, p, q);
      if (rows != nullptr)
        kernels.pack_rows(q - p, filters, dy, filters, rows + (p - begin) * ld, ld);
      if (right == nullptr) return;
      kernels.pack_row_pairs(q - p, filters, dy, filters, right + (p - begin) / 2 * filters,
                             filters);
      bias_gradient(thread, dy, q - p);
    });
  }

  // Adds the product of a tile of pairs to the weights' gradient.
  void multiply_weights(TeamThread thread, int64_t places) const {
    kernels.gemm_pairs({depth, filters, half_of(places), left_of(thread), 1, depth,
                        right_of(thread), filters, weights->of(thread), filters, true});
  }

  // Writes the gradient of the patches of some places, or adds to it.
  void input_gradient(TeamThread thread, const float* dy, int64_t places, float* to,
                      bool accumulate) const {
    if (!pairs_) {
      return kernels.gemm({places, depth, filters, dy, filters, 1, context.arena.floats(rearranged),
                           depth, to, depth, accumulate});
    }
    const int64_t ld = half_of(filters);
    kernels.gemm_pairs({places, depth, ld, rows_of(thread), ld, 1, context.arena.floats(turned_),
                        depth, to, depth, accumulate});
  }

  int64_t left_floats() const {
    return std::max(tile_places_ * half_of(depth), half_of(tile_places_) * depth);
  }
  int64_t right_floats() const { return half_of(tile_places_) * filters; }
  int64_t row_floats() const { return tile_places_ * half_of(filters); }
  float* left_of(TeamThread thread) const {
    return context.own(left_pairs_, left_floats(), thread);
  }
  float* right_of(TeamThread thread) const {
    return context.own(right_pairs_, right_floats(), thread);
  }
  float* rows_of(TeamThread thread) const { return context.own(rows_, row_floats(), thread); }

  // Computes the gradient of the input for single places. There it is the patches' gradient.
  void tile_gradient(TeamThread thread, int64_t sample, const float* dy, int64_t begin, int64_t end,
                     bool accumulate) const {
    const Numbers to = context.gradient(in, sample) + begin * depth;
    const int64_t count = (end - begin) * depth;
    float* dx = begin_write(to, gradient_memory(thread), count, accumulate);
    input_gradient(thread, dy, end - begin, dx, accumulate);
    finish_gradient(thread, context.data(in, sample) + begin * depth, to, dx, end - begin);
  }

  const bool pointwise_;
  const bool pairs_;  // products of pairs of bfloat16
  const int64_t tile_places_;
  Block tile_;           // each thread's patches, or their gradient
  Block image_;          // each thread's sample, if its values must be computed first
  Block gradient_tile_;  // each thread's gradient of the raw output
  // Each thread's floats before rounding to bfloat16.
  Block output_tile_, input_gradient_;
  // Each thread's factors of products as pairs: patches, gradients of two places and of one; and
  // the kernel, not transposed and transposed.
  Block left_pairs_, right_pairs_, rows_, packed_, turned_;
};

}  // namespace

std::unique_ptr<Operation> make_patch_convolution(const Conv2d& layer, const Node& node,
                                                  Context& context) {
  return std::make_unique<PatchConvolution>(layer, node, context);
}

}  // namespace muster::compute::cpu
