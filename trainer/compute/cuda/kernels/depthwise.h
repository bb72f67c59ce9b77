#pragma once

#include "trainer/compute/cuda/kernels/column_sums.h"
#include "trainer/compute/cuda/kernels/windows.h"

namespace muster::compute::cuda {

// Convolutions of each channel by itself, with w, [window, channels]. A thread computes a run of
// neighbouring places, of one line or of two, for a pack of channels. For windows of 3 x 3 with the
// same stride in both directions, the loops are known at compile time: a thread starts all loads of
// its run before it waits for one, and keeps the values in registers.

// A window's width and height, and its stride; 0: any.
template <int Size, int Stride>
struct FixedWindow {
  static constexpr int kSize = Size, kStride = Stride;
  // The number of places of a line that the windows of `places` neighbouring places cover.
  static constexpr int covered(int places) { return (places - 1) * Stride + Size; }
};

// Calls function(FixedWindow, Fixed<N>, a, b), with N, a and b from with_packs.
template <class Function>
MUSTER_INLINE void with_window(const Slide& s, const Numbers& a, const Numbers& b,
                               Function function) {
  with_packs(s.channels, a, b, [&]<int N>(Fixed<N>, auto one, auto other) {
    constexpr bool kKnown = N != 1 && !std::is_same_v<decltype(one), Numbers>;
    const bool small = s.window_height == 3 && s.window_width == 3 && s.down == s.right;
    if constexpr (kKnown) {
      if (small && s.down == 1) return function(FixedWindow<3, 1>{}, Fixed<N>{}, one, other);
      if (small && s.down == 2) return function(FixedWindow<3, 2>{}, Fixed<N>{}, one, other);
    }
    function(FixedWindow<0, 0>{}, Fixed<N>{}, one, other);
  });
}

// Runs of places, for packs of channels: kPlaces places in each of `lines` lines.
struct Runs {
  static constexpr int kPlaces = 4;

  int64_t samples;
  int height, width, channels;
  int lines = 1;

  MUSTER_INLINE int in_line() const { return tiles_of(width, kPlaces); }
  MUSTER_INLINE int in_column() const { return tiles_of(height, lines); }
  MUSTER_INLINE int64_t count() const { return samples * in_column() * in_line(); }
  MUSTER_INLINE Shape shape() const { return blocks_for(count() * channels / pack_of(channels)); }
  // Calls function(place, channel), with the first place of the run.
  template <int N, class Block, class Function>
  MUSTER_INLINE void each(Block& block, Function function) const {
    for_packs<N>(block, count(), channels, [&](int i, int channel) {
      Place place = place_of_item(static_cast<uint32_t>(i) / static_cast<uint32_t>(channels),
                                  in_column(), in_line());
      place.x *= kPlaces;
      place.y *= lines;
      function(place, channel);
    });
  }
  // Returns the number of numbers before this channel of the place.
  MUSTER_INLINE int at(Place place, int channel) const {
    return ((place.sample * height + place.y) * width + place.x) * channels + channel;
  }
};

// A reader of values that are not normalized.
struct Same {
  template <int N>
  MUSTER_INLINE Pack<N> operator()(const Pack<N>& pack) const {
    return pack;
  }
};

// `Lines` x `Places` neighbouring places of an image. For places outside the image, the nearest
// places are loaded, so that no load waits for a decision; read() returns zeros for them. bfloat16
// numbers are all loaded at once and kept in the format of memory; floats are loaded line by line,
// because there are few registers.
template <class From, int N, int Lines, int Places>
class Patch {
 public:
  // (y, x) is the first place; `before` is the number of numbers before the sample's channel.
  MUSTER_INLINE Patch(const From& from, int before, int y, int x, int height, int width,
                      int channels)
      : from_(from),
        before_(before),
        y_(y),
        x_(x),
        height_(height),
        width_(width),
        channels_(channels) {
    MUSTER_UNROLL_ALL
    for (int i = 0; i < kKept; ++i) load(i, raw_[i]);
  }

  // Reads line i.
  template <class Read>
  MUSTER_INLINE void read(const Read& read, int i, Pack<N>* values) {
    if constexpr (kKept == 0) load(i, raw_[0]);
    MUSTER_UNROLL_ALL
    for (int j = 0; j < Places; ++j) values[j] = read(From::unpack(raw_[kKept == 0 ? 0 : i][j]));
    if (is_in(y_ + i, height_) && x_ >= 0 && x_ + Places <= width_) return;
    MUSTER_UNROLL_ALL
    for (int j = 0; j < Places; ++j) {
      const bool inside = is_in(y_ + i, height_) && is_in(x_ + j, width_);
      MUSTER_UNROLL_ALL
      for (int n = 0; n < N; ++n) values[j].at[n] = inside ? values[j].at[n] : 0.0f;
    }
  }

 private:
  using Raw = typename From::template Raw<N>;
  static constexpr int kKept = sizeof(Raw) < sizeof(Pack<N>) && Lines * Places <= 24 ? Lines : 0;

  MUSTER_INLINE void load(int i, Raw* raw) const {
    const int line = before_ + nearest(y_ + i, height_) * width_ * channels_;
    MUSTER_UNROLL_ALL
    for (int j = 0; j < Places; ++j)
      raw[j] = from_.template load_raw<N>(line + nearest(x_ + j, width_) * channels_);
  }

  const From& from_;
  const int before_, y_, x_, height_, width_, channels_;
  Raw raw_[kKept == 0 ? 1 : kKept][Places];
};

template <int N>
MUSTER_INLINE void add_product(Pack<N>& sum, const Pack<N>& a, const Pack<N>& b) {
  MUSTER_UNROLL_ALL
  for (int i = 0; i < N; ++i) sum.at[i] = fma(a.at[i], b.at[i], sum.at[i]);
}

// Adds to `sums`, [Lines, Runs::kPlaces], the convolution of a patch by a window that is known.
// With `Turned` the window's places are taken in the opposite order.
template <class Window, int Lines, bool Turned, int N, class Patch, class Read>
MUSTER_INLINE void convolve(Patch& patch, const Read& read, const float* w, int channels,
                            Pack<N> (*sums)[Runs::kPlaces]) {
  constexpr int kSize = Window::kSize, kStride = Window::kStride;
  constexpr int kCovered = Window::covered(Runs::kPlaces);
  MUSTER_UNROLL_ALL
  for (int i = 0; i < Window::covered(Lines); ++i) {
    Pack<N> values[kCovered];
    patch.read(read, i, values);
    MUSTER_UNROLL_ALL
    for (int line = 0; line < Lines; ++line) {
      const int r = i - line * kStride;
      if (r < 0 || r >= kSize) continue;
      MUSTER_UNROLL_ALL
      for (int k = 0; k < kSize; ++k) {
        const int tap = r * kSize + k;
        const Pack<N> weight =
            load_floats<N>(w + (Turned ? kSize * kSize - 1 - tap : tap) * channels);
        MUSTER_UNROLL_ALL
        for (int p = 0; p < Runs::kPlaces; ++p)
          add_product<N>(sums[line][p], values[p * kStride + k], weight);
      }
    }
  }
}

// The lines of a run: two if the window's places overlap much and the lines are known at compile
// time.
MUSTER_INLINE int lines_of_run(const Slide& s) {
  return pack_of(s.channels) > 1 && s.window_height == 3 && s.window_width == 3 && s.down == 1 &&
                 s.right == 1
             ? 2
             : 1;
}

// y = the convolution of x by w.
struct Depthwise {
  static constexpr int kBlocksAtOnce = 2;

  Slide slide;
  int64_t samples;
  Reader x;
  const float* w;
  Numbers y;

  MUSTER_INLINE Runs runs() const {
    return {samples, slide.out_height, slide.out_width, slide.channels, lines_of_run(slide)};
  }
  MUSTER_INLINE Shape shape() const { return runs().shape(); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    with_window(slide, x.z, y, [&]<class Window, int N>(Window, Fixed<N>, auto from, auto to) {
      constexpr int kLines = Window::kStride == 2 ? 1 : 2;
      const Slide& s = slide;
      const Runs all = runs();
      all.each<N>(block, [&](Place out, int channel) {
        Pack<N> sums[kLines][Runs::kPlaces] = {};
        if constexpr (Window::kSize > 0) {
          Patch<decltype(from), N, Window::covered(kLines), Window::covered(Runs::kPlaces)> patch(
              from, out.sample * s.height * s.width * s.channels + channel,
              out.y * Window::kStride - s.top, out.x * Window::kStride - s.left, s.height, s.width,
              s.channels);
          convolve<Window, kLines, false, N>(patch, x.at<N>(channel), w + channel, s.channels,
                                             sums);
        } else {
          for (int line = 0; line < all.lines; ++line)
            add<N>(from, {out.sample, out.y + line, out.x}, channel, sums[line]);
        }
        MUSTER_UNROLL_ALL
        for (int line = 0; line < kLines; ++line) MUSTER_UNROLL_ALL
        for (int p = 0; p < Runs::kPlaces; ++p)
          if (line < all.lines && out.y + line < all.height && out.x + p < all.width)
            to.template store_pack<N>(all.at({out.sample, out.y + line, out.x + p}, channel),
                                      sums[line][p]);
      });
    });
  }

 private:
  template <int N, class From>
  MUSTER_INLINE void add(const From& from, Place out, int channel, Pack<N>* sums) const {
    const Slide& s = slide;
    const auto read = x.at<N>(channel);
    const int left = out.x * s.right - s.left;
    for (int r = 0; r < s.window_height; ++r) {
      const int y = out.y * s.down - s.top + r;
      if (!is_in(y, s.height)) continue;
      const int line = (out.sample * s.height + y) * s.width * s.channels + channel;
      for (int k = 0; k < s.window_width; ++k) {
        const Pack<N> weight = load_floats<N>(w + (r * s.window_width + k) * s.channels + channel);
        MUSTER_UNROLL_ALL
        for (int p = 0; p < Runs::kPlaces; ++p) {
          const int at = left + p * s.right + k;
          if (is_in(at, s.width))
            add_product<N>(sums[p], read(from.template load_pack<N>(line + at * s.channels)),
                           weight);
        }
      }
    }
  }
};

// dx (+)= the convolution's gradient by the image.
struct DepthwiseInputGradient {
  static constexpr int kBlocksAtOnce = 2;

  Slide slide;
  int64_t samples;
  Numbers dy;
  const float* w;
  Numbers dx;
  bool accumulate;

  MUSTER_INLINE Runs runs() const {
    return {samples, slide.height, slide.width, slide.channels, lines_of_run(slide)};
  }
  MUSTER_INLINE Shape shape() const { return runs().shape(); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    with_window(slide, dy, dx, [&]<class Window, int N>(Window, Fixed<N>, auto from, auto to) {
      constexpr int kLines = Window::kStride == 2 ? 1 : 2;
      const Slide& s = slide;
      const Runs all = runs();
      all.each<N>(block, [&](Place in, int channel) {
        Pack<N> sums[kLines][Runs::kPlaces] = {};
        const auto each_place = [&](auto function) {
          MUSTER_UNROLL_ALL
          for (int line = 0; line < kLines; ++line) MUSTER_UNROLL_ALL
          for (int p = 0; p < Runs::kPlaces; ++p)
            if (line < all.lines && in.y + line < all.height && in.x + p < all.width)
              function(all.at({in.sample, in.y + line, in.x + p}, channel), sums[line][p]);
        };
        if constexpr (Window::kStride == 1) {
          // The gradient is the convolution of dy by the turned window.
          constexpr int kBefore = Window::kSize - 1;
          Patch<decltype(from), N, Window::covered(kLines), Window::covered(Runs::kPlaces)> patch(
              from, in.sample * s.out_height * s.out_width * s.channels + channel,
              in.y + s.top - kBefore, in.x + s.left - kBefore, s.out_height, s.out_width,
              s.channels);
          convolve<Window, kLines, true, N>(patch, Same{}, w + channel, s.channels, sums);
        } else {
          for (int line = 0; line < all.lines; ++line)
            add<Window, N>(from, {in.sample, in.y + line, in.x}, channel, sums[line]);
        }
        each_place([&](int at, Pack<N>& sum) {
          const Pack<N> before = accumulate ? to.template load_pack<N>(at) : Pack<N>{};
          MUSTER_UNROLL_ALL
          for (int n = 0; n < N; ++n) sum.at[n] += before.at[n];
          to.template store_pack<N>(at, sum);
        });
      });
    });
  }

 private:
  template <class Window, int N, class From>
  MUSTER_INLINE void add(const From& from, Place in, int channel, Pack<N>* sums) const {
    const Slide& s = slide;
    constexpr bool kKnown = Window::kSize > 0;
    const int height = kKnown ? Window::kSize : s.window_height;
    const int width = kKnown ? Window::kSize : s.window_width;
    const int down = kKnown ? Window::kStride : s.down;
    const int right = kKnown ? Window::kStride : s.right;
    MUSTER_UNROLL(kKnown ? 3 : 1)
    for (int r = 0; r < height; ++r) {
      const int y = place_at(in.y + s.top - r, down, s.out_height);
      if (y < 0) continue;
      const int line = (in.sample * s.out_height + y) * s.out_width * s.channels + channel;
      MUSTER_UNROLL(kKnown ? 3 : 1)
      for (int k = 0; k < width; ++k) {
        const Pack<N> weight = load_floats<N>(w + (r * width + k) * s.channels + channel);
        MUSTER_UNROLL_ALL
        for (int p = 0; p < Runs::kPlaces; ++p) {
          const int x = place_at(in.x + p + s.left - k, right, s.out_width);
          if (x >= 0)
            add_product<N>(sums[p], from.template load_pack<N>(line + x * s.channels), weight);
        }
      }
    }
  }
};

// The convolution's gradient by w, as [parts, window, channels] sums (column_sums.h): the summed
// rows are segments of the output's lines, and a block computes some of the window's places.
struct DepthwiseWeightParts {
  static constexpr int kBlocksAtOnce = 2;

  Slide slide;
  int64_t samples;
  Reader x{};
  Numbers dy{};
  float* parts = nullptr;

  MUSTER_INLINE Cut cut() const {
    return {samples * slide.out_height * segments(),
            slide.channels,
            pack_of(slide.channels),
            {.rows = 1, .blocks = 264}};
  }
  MUSTER_INLINE int taps() const { return slide.window_height * slide.window_width; }
  MUSTER_INLINE Shape shape() const { return {cut().shape().blocks * quotient_up(taps(), kTaps)}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    with_window(slide, x.z, dy,
                [&]<class Window, int N>(Window, Fixed<N>, auto from, auto gradient) {
                  const Cut all = cut();
                  const int blocks = static_cast<int>(all.shape().blocks);
                  const int index = static_cast<int>(block.index());
                  const int first = index / blocks * kTaps;
                  sum_part<N, kTaps>(
                      block, index % blocks, all,
                      [&](int channel) {
                        return [=, this, read = x.at<N>(channel)](int row, Pack<N>* sums) {
                          add<Window, N>(from, gradient, read, row, channel, first, sums);
                        };
                      },
                      [&](int part, int channel, auto total) {
                        const int at = (part * taps() + first) * slide.channels + channel;
                        for (int k = 0; k < kTaps && first + k < taps(); ++k)
                          parts[at + k * slide.channels] = total(k);
                      });
                });
  }

 private:
  static constexpr int kTaps = 9, kSegment = 30;

  MUSTER_INLINE int segments() const { return (slide.out_width + kSegment - 1) / kSegment; }

  // Adds a line segment's terms to the sums of the window's places from `first` on.
  template <class Window, int N, class From, class Gradient>
  MUSTER_INLINE void add(const From& from, const Gradient& gradient, const ColumnReader<N>& read,
                         int segment, int channel, int first, Pack<N>* sums) const {
    const Slide& s = slide;
    const Place line = place_of_item(static_cast<uint32_t>(segment), s.out_height, segments());
    const int begin = line.x * kSegment;
    const int end = begin + kSegment < s.out_width ? begin + kSegment : s.out_width;
    const int out = (line.sample * s.out_height + line.y) * s.out_width * s.channels + channel;
    const int before = line.sample * s.height * s.width * s.channels + channel;
    if constexpr (Window::kSize > 0) {
      constexpr int kPlaces = Window::kStride == 1 ? 3 : 2;
      constexpr int kCovered = Window::covered(kPlaces);
      for (int at = begin; at < end; at += kPlaces) {
        Patch<Gradient, N, 1, kPlaces> slopes(gradient, out, 0, at, 1, end, s.channels);
        Patch<From, N, Window::kSize, kCovered> image(
            from, before, line.y * Window::kStride - s.top, at * Window::kStride - s.left, s.height,
            s.width, s.channels);
        Pack<N> d[kPlaces];
        slopes.read(Same{}, 0, d);
        MUSTER_UNROLL_ALL
        for (int r = 0; r < Window::kSize; ++r) {
          Pack<N> values[kCovered];
          image.read(read, r, values);
          MUSTER_UNROLL_ALL
          for (int k = 0; k < Window::kSize; ++k) MUSTER_UNROLL_ALL
          for (int p = 0; p < kPlaces; ++p)
            add_product<N>(sums[r * Window::kSize + k], values[p * Window::kStride + k], d[p]);
        }
      }
    } else {
      for (int at = begin; at < end; ++at) {
        const Pack<N> d = gradient.template load_pack<N>(out + at * s.channels);
        MUSTER_UNROLL_ALL
        for (int tap = 0; tap < kTaps; ++tap) {
          const int y = line.y * s.down - s.top + (first + tap) / s.window_width;
          const int x_at = at * s.right - s.left + (first + tap) % s.window_width;
          if (first + tap < taps() && is_in(y, s.height) && is_in(x_at, s.width))
            add_product<N>(
                sums[tap],
                read(from.template load_pack<N>(before + (y * s.width + x_at) * s.channels)), d);
        }
      }
    }
  }
};

}  // namespace muster::compute::cuda
