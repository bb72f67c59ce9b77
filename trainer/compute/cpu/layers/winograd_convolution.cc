#include <algorithm>

#include "trainer/compute/cpu/layers/convolution.h"
#include "trainer/compute/cpu/layers/surrounded_image.h"

namespace muster::compute::cpu {
namespace {

constexpr int64_t kPlanes = kWinogradPlanes, kTile = kWinogradTile;

// Returns the number of tiles that cover `places` places.
constexpr int64_t tiles_over(int64_t places) {
  return (places + kTile - 1) / kTile;
}

// See WinogradTiles. The tiles of some rows of a sample, or of a part of one row, are transformed
// and multiplied together, so that their spectra stay in the second-level cache.
class WinogradConvolution : public ConvolutionOperation {
 public:
  WinogradConvolution(const Conv2d& layer, const Node& node, Context& context)
      : ConvolutionOperation(layer, node, context, {.matrices = kPlanes, .lines = kTile}),
        channels_(sliding.channels),
        kernel_floats_(channels_ * filters),
        tiles_high_(tiles_over(sliding.out_height)),
        tiles_wide_(tiles_over(sliding.out_width)),
        across_(tiles_across()),
        down_(std::clamp<int64_t>(tiles_at_once() / tiles_wide_, 1, tiles_high_)),
        image_(context, in, sliding, kTile * tiles_high_ + 2, kTile * tiles_wide_ + 2),
        kernel_(context.arena.add(kPlanes * kernel_floats_ * 4)),
        input_(context.add_own(spectra(channels_))),
        output_(context.add_own(spectra(filters))) {
    if (weights) kernel_gradient_ = context.add_own(kPlanes * kernel_floats_);
    if (out.needs_gradient) output_gradient_ = context.add_own(kTile * down_ * gradient_row());
    if (in.needs_gradient && !image_.same_layout())
      input_gradient_ = context.add_own(image_.floats());
    if (in.half || out.half) lines_ = context.add_own(line_floats());
  }

  void forward(Program& program) override {
    program.add(
        name + " kernel's spectrum", {writes(kernel_, Share::own)},
        [this](const Step& step, TeamThread thread) {
          const int64_t begin = thread.begin(kernel_floats_, kLine);
          const int64_t end = thread.end(kernel_floats_, kLine);
          kernels.winograd_kernel(kernel_tile(step.parameters + kernel_offset + begin,
                                              context.arena.floats(kernel_) + begin, end - begin));
        });
    ConvolutionOperation::forward(program);
  }

 private:
  // The spectra of input and output of this number of tiles take 256 KB. With more than 227
  // channels and filters, the result is the smallest number, whose spectra take more.
  int64_t tiles_at_once() const {
    return std::clamp<int64_t>(65536 / (kPlanes * (channels_ + filters)), 8, 64);
  }
  // Returns the tiles in a row of tiles, or in a part of a row. The parts of a row are about equal.
  int64_t tiles_across() const {
    const int64_t parts = (tiles_wide_ + tiles_at_once() - 1) / tiles_at_once();
    return (tiles_wide_ + parts - 1) / parts;
  }
  // The spectrum of a tile takes one cache line more than needed, so that the spectra of several
  // tiles do not begin in the same set of the first-level cache.
  static int64_t tile_floats(int64_t numbers) { return kPlanes * numbers + kLine; }
  int64_t spectra(int64_t numbers) const { return across_ * down_ * tile_floats(numbers); }
  int64_t gradient_row() const { return kTile * tiles_wide_ * filters; }
  int64_t line_floats() const {
    return std::max(kTile * down_ * sliding.out_width * filters, sliding.width * channels_);
  }

  WinogradTiles kernel_tile(float* kernel, float* spectrum, int64_t count) const {
    return {1, count, kernel, kernel_floats_, 3 * kernel_floats_, spectrum, 0, kernel_floats_};
  }

  // Some rows and columns of tiles. The first tile begins in output row `line` and is tile `first`
  // of its row.
  struct Stretch {
    int64_t line, rows, first, columns;
    int64_t tiles() const { return rows * columns; }
  };

  // Calls function(WinogradTiles, row) for each row of tiles of a stretch. `image` is the beginning
  // of the stretch's first square, in an image of `channels` channels with `row` floats from row to
  // row.
  template <typename Function>
  void for_rows(const Stretch& s, int64_t channels, float* image, int64_t row, float* spectrum,
                Function function) const {
    for (int64_t r = 0; r < s.rows; ++r) {
      function(WinogradTiles{s.columns, channels, image + kTile * r * row, channels, row,
                             spectrum + r * s.columns * tile_floats(channels),
                             tile_floats(channels), channels},
               r);
    }
  }

  // Splits output rows [begin, end), at most kTile * down_ of them, into stretches of at most
  // across_ tiles a row, and calls function(Stretch) for each.
  template <typename Function>
  void for_stretches(int64_t begin, int64_t end, Function function) const {
    for (int64_t tile = 0; tile < tiles_wide_; tile += across_)
      function(
          Stretch{begin, tiles_over(end - begin), tile, std::min(across_, tiles_wide_ - tile)});
  }

  float* input_of(TeamThread thread) const {
    return context.own(input_, spectra(channels_), thread);
  }
  float* output_of(TeamThread thread) const {
    return context.own(output_, spectra(filters), thread);
  }

  void transform_input(const Stretch& s, const float* image, float* spectrum) const {
    float* first = const_cast<float*>(image) + s.line * image_.row() + kTile * s.first * channels_;
    for_rows(s, channels_, first, image_.row(), spectrum,
             [&](const WinogradTiles& tiles, int64_t) { kernels.winograd_input(tiles); });
  }

  void forward_lines(const Step& step, TeamThread thread, const Lines& lines) const override {
    const float* x = image_.read(thread, lines.sample, lines.begin, kTile * tiles_over(lines.end));
    const int64_t line = sliding.out_width * filters;
    for (int64_t row = lines.begin; row < lines.end; row += kTile * down_) {
      const int64_t end = std::min(row + kTile * down_, lines.end);
      const Numbers to = context.data(out, lines.sample) + row * line;
      float* y = begin_write(to, lines_of(thread), (end - row) * line, false);
      for_stretches(row, end,
                    [&](const Stretch& s) { forward_stretch(thread, s, x, y, end - row); });
      finish(step, thread, to, y, (end - row) * sliding.out_width);
    }
  }

  // Writes output row s.line and the `lines - 1` rows after it to `y`.
  void forward_stretch(TeamThread thread, const Stretch& s, const float* x, float* y,
                       int64_t lines) const {
    float* input = input_of(thread);
    float* output = output_of(thread);
    transform_input(s, x, input);
    for (int64_t i = 0; i < kPlanes; ++i) {
      kernels.gemm({s.tiles(), filters, channels_, input + i * channels_, tile_floats(channels_), 1,
                    context.arena.floats(kernel_) + i * kernel_floats_, filters,
                    output + i * filters, tile_floats(filters)});
    }
    for_rows(s, filters, y + kTile * s.first * filters, sliding.out_width * filters, output,
             [&](const WinogradTiles& tiles, int64_t r) {
               kernels.winograd_output(tiles, lines - kTile * r,
                                       sliding.out_width - kTile * s.first);
             });
  }

  std::vector<Access> more_accesses() const override { return {reads(kernel_, Share::all)}; }

  float* lines_of(TeamThread thread) const { return context.own(lines_, line_floats(), thread); }

  // Writes [36 planes][filters, channels]; each thread writes some planes.
  void rearrange(const Step&, TeamThread thread) const override {
    for (int64_t i = thread.begin(kPlanes); i < thread.end(kPlanes); ++i) {
      kernels.transpose(channels_, filters, context.arena.floats(kernel_) + i * kernel_floats_,
                        filters, context.arena.floats(rearranged) + i * kernel_floats_, channels_);
    }
  }

  void backward_samples(TeamThread thread, int64_t begin, int64_t end,
                        bool accumulate) const override {
    float* gradient = kernel_gradient_of(thread);
    if (weights) std::fill_n(gradient, kPlanes * kernel_floats_, 0.0f);
    for (int64_t i = begin; i < end; ++i) backward_sample(thread, i, accumulate);
    if (weights)
      kernels.winograd_kernel_gradient(kernel_tile(weights->of(thread), gradient, kernel_floats_));
  }

  float* kernel_gradient_of(TeamThread thread) const {
    return context.own(kernel_gradient_, kPlanes * kernel_floats_, thread);
  }

  void backward_sample(TeamThread thread, int64_t sample, bool accumulate) const {
    const Sliding& s = sliding;
    const float* x = weights ? image_.read(thread, sample, 0, kTile * tiles_high_) : nullptr;
    float* dx = nullptr;
    if (in.needs_gradient) {
      dx = input_gradient_ ? context.own(input_gradient_, image_.floats(), thread)
                           : context.gradient(in, sample).floats();
      if (input_gradient_ || !accumulate) std::fill_n(dx, image_.floats(), 0.0f);
    }
    for (int64_t row = 0; row < s.out_height; row += kTile * down_) {
      const int64_t end = std::min(row + kTile * down_, s.out_height);
      float* dy = raw_gradient(thread, sample, row, end);
      if (weights) bias_gradient(thread, dy, (end - row) * kTile * tiles_wide_);
      for_stretches(row, end,
                    [&](const Stretch& stretch) { backward_stretch(thread, stretch, x, dy, dx); });
    }
    if (input_gradient_) {
      write_gradient(thread, sample, dx, accumulate);
    } else if (in.needs_gradient) {
      finish_gradient(thread, context.data(in, sample), context.gradient(in, sample), dx,
                      s.height * s.width);
    }
  }

  // Returns rows [begin, end) of the raw output's gradient, with zeros where the tiles extend
  // beyond the output.
  float* raw_gradient(TeamThread thread, int64_t sample, int64_t begin, int64_t end) const {
    const int64_t wide = sliding.out_width;
    float* dy = context.own(output_gradient_, kTile * down_ * gradient_row(), thread);
    for (int64_t row = begin; row < end; ++row)
      output_gradient(sample, row * wide, (row + 1) * wide, dy + (row - begin) * gradient_row());
    const int64_t covered = kTile * tiles_over(end - begin);
    std::fill(dy + (end - begin) * gradient_row(), dy + covered * gradient_row(), 0.0f);
    return dy;
  }

  // `dy` begins with row s.line.
  void backward_stretch(TeamThread thread, const Stretch& s, const float* x, float* dy,
                        float* dx) const {
    float* input = input_of(thread);
    float* output = output_of(thread);
    for_rows(s, filters, dy + kTile * s.first * filters, gradient_row(), output,
             [&](const WinogradTiles& tiles, int64_t) { kernels.winograd_output_gradient(tiles); });
    if (weights) {
      transform_input(s, x, input);
      for (int64_t i = 0; i < kPlanes; ++i) {
        kernels.gemm({channels_, filters, s.tiles(), input + i * channels_, 1,
                      tile_floats(channels_), output + i * filters, tile_floats(filters),
                      kernel_gradient_of(thread) + i * kernel_floats_, filters, true});
      }
    }
    if (dx == nullptr) return;
    for (int64_t i = 0; i < kPlanes; ++i) {
      kernels.gemm({s.tiles(), channels_, filters, output + i * filters, tile_floats(filters), 1,
                    context.arena.floats(rearranged) + i * kernel_floats_, channels_,
                    input + i * channels_, tile_floats(channels_)});
    }
    for_rows(s, channels_, dx + s.line * image_.row() + kTile * s.first * channels_, image_.row(),
             input,
             [&](const WinogradTiles& tiles, int64_t) { kernels.winograd_input_gradient(tiles); });
  }

  // Writes dx, without the border of zeros, to the gradient of the input, or adds it.
  void write_gradient(TeamThread thread, int64_t sample, const float* dx, bool accumulate) const {
    const int64_t count = sliding.width * channels_;
    for (int64_t y = 0; y < sliding.height; ++y) {
      const Numbers to = context.gradient(in, sample) + y * count;
      float* line = begin_write(to, lines_of(thread), count, accumulate);
      kernels.copy(1, count, dx + image_.first() + y * image_.row(), count, line, count,
                   accumulate);
      finish_gradient(thread, context.data(in, sample) + y * count, to, line, sliding.width);
    }
  }

  const int64_t channels_, kernel_floats_;
  const int64_t tiles_high_, tiles_wide_;  // number of tiles of a sample
  const int64_t across_, down_;            // the most tiles computed at once
  const SurroundedImage image_;
  Block kernel_;           // the kernel's spectrum
  Block input_, output_;   // each thread's spectra of the tiles computed at once
  Block kernel_gradient_;  // each thread's spectrum of the kernel's gradient
  Block output_gradient_;  // each thread's rows of the raw output's gradient, to whole tiles
  Block input_gradient_;   // each thread's gradient of a sample with its zeros
  Block lines_;            // each thread's rows of floats before rounding to bfloat16
};

}  // namespace

bool suits_winograd(const Sliding& s, int64_t filters) {
  constexpr int64_t kLeastChannels = 16, kMostChannels = 256, kLeastPlaces = 64;
  const auto suits = [](int64_t n) { return n >= kLeastChannels && n <= kMostChannels; };
  return s.window_height == 3 && s.window_width == 3 && s.down == 1 && s.right == 1 &&
         suits(s.channels) && suits(filters) && places_of(s) >= kLeastPlaces;
}

std::unique_ptr<Operation> make_winograd_convolution(const Conv2d& layer, const Node& node,
                                                     Context& context) {
  return std::make_unique<WinogradConvolution>(layer, node, context);
}

}  // namespace muster::compute::cpu
