#pragma once

#include "trainer/compute/cuda/kernels/column_sums.h"
#include "trainer/compute/cuda/kernels/windows.h"

namespace muster::compute::cuda {

// Convolutions of each channel by itself, with w, [window, channels]. A thread computes a run of
// neighbouring places of a line, for a pack of channels. For windows of 3 x 3 with one stride in
// both directions the loops are known where the kernels are compiled, so that what a run reads
// stays in registers.

// A window's width and height, and its stride; 0: any.
template <int Size, int Stride>
struct FixedWindow {
  static constexpr int kSize = Size, kStride = Stride;
  // The places of a line that the windows of neighbouring places cover.
  static constexpr int covered(int places) { return (places - 1) * Stride + Size; }
};

// Calls function(FixedWindow, Fixed<N>, a, b), with what with_packs gives.
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

// Runs of places, for packs of channels.
struct Runs {
  static constexpr int kPlaces = 4;

  int64_t samples;
  int height, width, channels;

  MUSTER_INLINE int in_line() const { return (width + kPlaces - 1) / kPlaces; }
  MUSTER_INLINE int64_t count() const { return samples * height * in_line(); }
  MUSTER_INLINE Shape shape() const { return blocks_for(count() * channels / pack_of(channels)); }
  // Calls function(place, channel), with the first place of the run.
  template <int N, class Block, class Function>
  MUSTER_INLINE void each(Block& block, Function function) const {
    for_packs<N>(block, count(), channels, [&](int i, int channel) {
      Place place = place_of_item(static_cast<uint32_t>(i) / static_cast<uint32_t>(channels),
                                  height, in_line());
      place.x *= kPlaces;
      function(place, channel);
    });
  }
  // Returns how many numbers lie before the place's channel.
  MUSTER_INLINE int at(Place place, int channel) const {
    return ((place.sample * height + place.y) * width + place.x) * channels + channel;
  }
};

// A reader of what is not normalized.
struct Same {
  template <int N>
  MUSTER_INLINE Pack<N> operator()(const Pack<N>& pack) const {
    return pack;
  }
};

// Reads neighbouring places of a line, `before` being the numbers before the line's channel. Those
// outside of the image are zero. Addresses stay inside, so that no load waits for a decision.
template <int N, int Places, class From, class Read>
MUSTER_INLINE void load_places(const From& from, const Read& read, int before, int first, int width,
                               int channels, Pack<N>* values) {
  if (first >= 0 && first + Places <= width) {
    MUSTER_UNROLL_ALL
    for (int j = 0; j < Places; ++j)
      values[j] = read(from.template load_pack<N>(before + (first + j) * channels));
    return;
  }
  MUSTER_UNROLL_ALL
  for (int j = 0; j < Places; ++j) {
    const bool inside = is_in(first + j, width);
    values[j] = read(from.template load_pack<N>(before + nearest(first + j, width) * channels));
    MUSTER_UNROLL_ALL
    for (int i = 0; i < N; ++i) values[j].at[i] = inside ? values[j].at[i] : 0.0f;
  }
}

template <int N>
MUSTER_INLINE void add_product(Pack<N>& sum, const Pack<N>& a, const Pack<N>& b) {
  MUSTER_UNROLL_ALL
  for (int i = 0; i < N; ++i) sum.at[i] = fma(a.at[i], b.at[i], sum.at[i]);
}

// y = the convolution.
struct Depthwise {
  static constexpr int kBlocksAtOnce = 2;

  Slide slide;
  int64_t samples;
  Reader x;
  const float* w;
  Numbers y;

  MUSTER_INLINE Runs runs() const {
    return {samples, slide.out_height, slide.out_width, slide.channels};
  }
  MUSTER_INLINE Shape shape() const { return runs().shape(); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    with_window(slide, x.z, y, [&]<class Window, int N>(Window, Fixed<N>, auto from, auto to) {
      const Runs all = runs();
      all.each<N>(block, [&](Place out, int channel) {
        Pack<N> sums[Runs::kPlaces] = {};
        add<Window, N>(from, out, channel, sums);
        MUSTER_UNROLL_ALL
        for (int p = 0; p < Runs::kPlaces; ++p)
          if (out.x + p < slide.out_width)
            to.template store_pack<N>(all.at(out, channel) + p * slide.channels, sums[p]);
      });
    });
  }

 private:
  template <class Window, int N, class From>
  MUSTER_INLINE void add(const From& from, Place out, int channel, Pack<N>* sums) const {
    const Slide& s = slide;
    const auto read = x.at<N>(channel);
    const int left = out.x * s.right - s.left;
    const auto line_of = [&](int y) {
      return (out.sample * s.height + y) * s.width * s.channels + channel;
    };
    if constexpr (Window::kSize > 0) {
      constexpr int kCovered = Window::covered(Runs::kPlaces);
      MUSTER_UNROLL_ALL
      for (int r = 0; r < Window::kSize; ++r) {
        const int y = out.y * Window::kStride - s.top + r;
        if (!is_in(y, s.height)) continue;
        Pack<N> values[kCovered];
        load_places<N, kCovered>(from, read, line_of(y), left, s.width, s.channels, values);
        MUSTER_UNROLL_ALL
        for (int k = 0; k < Window::kSize; ++k) {
          const Pack<N> weight = load_floats<N>(w + (r * Window::kSize + k) * s.channels + channel);
          MUSTER_UNROLL_ALL
          for (int p = 0; p < Runs::kPlaces; ++p)
            add_product<N>(sums[p], values[p * Window::kStride + k], weight);
        }
      }
    } else {
      for (int r = 0; r < s.window_height; ++r) {
        const int y = out.y * s.down - s.top + r;
        if (!is_in(y, s.height)) continue;
        for (int k = 0; k < s.window_width; ++k) {
          const Pack<N> weight =
              load_floats<N>(w + (r * s.window_width + k) * s.channels + channel);
          MUSTER_UNROLL_ALL
          for (int p = 0; p < Runs::kPlaces; ++p) {
            const int at = left + p * s.right + k;
            if (is_in(at, s.width))
              add_product<N>(
                  sums[p], read(from.template load_pack<N>(line_of(y) + at * s.channels)), weight);
          }
        }
      }
    }
  }
};

// dx (+)= its gradient by the image.
struct DepthwiseInputGradient {
  static constexpr int kBlocksAtOnce = 4;

  Slide slide;
  int64_t samples;
  Numbers dy;
  const float* w;
  Numbers dx;
  bool accumulate;

  MUSTER_INLINE Runs runs() const { return {samples, slide.height, slide.width, slide.channels}; }
  MUSTER_INLINE Shape shape() const { return runs().shape(); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    with_window(slide, dy, dx, [&]<class Window, int N>(Window, Fixed<N>, auto from, auto to) {
      const Runs all = runs();
      all.each<N>(block, [&](Place in, int channel) {
        const int at = all.at(in, channel);
        Pack<N> sums[Runs::kPlaces] = {};
        MUSTER_UNROLL_ALL
        for (int p = 0; p < Runs::kPlaces; ++p)
          if (accumulate && in.x + p < slide.width)
            sums[p] = to.template load_pack<N>(at + p * slide.channels);
        add<Window, N>(from, in, channel, sums);
        MUSTER_UNROLL_ALL
        for (int p = 0; p < Runs::kPlaces; ++p)
          if (in.x + p < slide.width) to.template store_pack<N>(at + p * slide.channels, sums[p]);
      });
    });
  }

 private:
  template <class Window, int N, class From>
  MUSTER_INLINE void add(const From& from, Place in, int channel, Pack<N>* sums) const {
    const Slide& s = slide;
    const auto line_of = [&](int y) {
      return (in.sample * s.out_height + y) * s.out_width * s.channels + channel;
    };
    if constexpr (Window::kStride == 1) {
      constexpr int kSize = Window::kSize, kCovered = Window::covered(Runs::kPlaces);
      const int left = in.x + s.left - (kSize - 1);
      MUSTER_UNROLL_ALL
      for (int r = 0; r < kSize; ++r) {
        const int y = in.y + s.top - r;
        if (!is_in(y, s.out_height)) continue;
        Pack<N> values[kCovered];
        load_places<N, kCovered>(from, Same{}, line_of(y), left, s.out_width, s.channels, values);
        MUSTER_UNROLL_ALL
        for (int k = 0; k < kSize; ++k) {
          const Pack<N> weight = load_floats<N>(w + (r * kSize + k) * s.channels + channel);
          MUSTER_UNROLL_ALL
          for (int p = 0; p < Runs::kPlaces; ++p)
            add_product<N>(sums[p], values[p + kSize - 1 - k], weight);
        }
      }
    } else {
      constexpr bool kKnown = Window::kSize > 0;
      const int height = kKnown ? Window::kSize : s.window_height;
      const int width = kKnown ? Window::kSize : s.window_width;
      const int down = kKnown ? Window::kStride : s.down;
      const int right = kKnown ? Window::kStride : s.right;
      MUSTER_UNROLL(kKnown ? 3 : 1)
      for (int r = 0; r < height; ++r) {
        const int y = place_at(in.y + s.top - r, down, s.out_height);
        if (y < 0) continue;
        MUSTER_UNROLL(kKnown ? 3 : 1)
        for (int k = 0; k < width; ++k) {
          const Pack<N> weight = load_floats<N>(w + (r * width + k) * s.channels + channel);
          MUSTER_UNROLL_ALL
          for (int p = 0; p < Runs::kPlaces; ++p) {
            const int x = place_at(in.x + p + s.left - k, right, s.out_width);
            if (x >= 0)
              add_product<N>(sums[p], from.template load_pack<N>(line_of(y) + x * s.channels),
                             weight);
          }
        }
      }
    }
  }
};

// Its gradient by w, as [parts, window, channels] sums (column_sums.h): the rows that are summed
// are segments of the output's lines, and a block takes some of the window's places.
struct DepthwiseWeightParts {
  static constexpr int kBlocksAtOnce = 2;

  Slide slide;
  int64_t samples;
  Reader x{};
  Numbers dy{};
  float* parts = nullptr;

  MUSTER_INLINE Cut cut() const {
    return {samples * slide.out_height * segments(), slide.channels, {.rows = 1, .blocks = 264}};
  }
  MUSTER_INLINE int taps() const { return slide.window_height * slide.window_width; }
  MUSTER_INLINE Shape shape() const { return {cut().shape().blocks * quotient_up(taps(), kTaps)}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    with_window(slide, x.z, dy,
                [&]<class Window, int N>(Window, Fixed<N>, auto from, auto gradient) {
                  const Cut all = cut();
                  const int64_t blocks = all.shape().blocks;
                  const int first = static_cast<int>(block.index() / blocks) * kTaps;
                  sum_part<N, kTaps>(
                      block, block.index() % blocks, all,
                      [&](int channel) {
                        return [=, this, read = x.at<N>(channel)](int row, Pack<N>* sums) {
                          add<Window, N>(from, gradient, read, row, channel, first, sums);
                        };
                      },
                      [&](int64_t part, int channel, auto total) {
                        const int64_t at = (part * taps() + first) * slide.channels + channel;
                        for (int k = 0; k < kTaps && first + k < taps(); ++k)
                          parts[at + k * slide.channels] = total(k);
                      });
                });
  }

 private:
  static constexpr int kTaps = 9, kSegment = 32;

  MUSTER_INLINE int segments() const { return (slide.out_width + kSegment - 1) / kSegment; }

  // Adds what a segment of a line adds to the window's places from `first` on.
  template <class Window, int N, class From, class Gradient>
  MUSTER_INLINE void add(const From& from, const Gradient& gradient, const ColumnReader<N>& read,
                         int segment, int channel, int first, Pack<N>* sums) const {
    const Slide& s = slide;
    const Place line = place_of_item(static_cast<uint32_t>(segment), s.out_height, segments());
    const int begin = line.x * kSegment;
    const int end = begin + kSegment < s.out_width ? begin + kSegment : s.out_width;
    const int out = (line.sample * s.out_height + line.y) * s.out_width * s.channels + channel;
    const auto image_line = [&](int y) {
      return (line.sample * s.height + y) * s.width * s.channels + channel;
    };
    if constexpr (Window::kSize > 0) {
      constexpr int kPlaces = 4, kCovered = Window::covered(kPlaces);
      for (int at = begin; at < end; at += kPlaces) {
        Pack<N> d[kPlaces];
        load_places<N, kPlaces>(gradient, Same{}, out, at, end, s.channels, d);
        const int left = at * Window::kStride - s.left;
        MUSTER_UNROLL_ALL
        for (int r = 0; r < Window::kSize; ++r) {
          const int y = line.y * Window::kStride - s.top + r;
          if (!is_in(y, s.height)) continue;
          Pack<N> values[kCovered];
          load_places<N, kCovered>(from, read, image_line(y), left, s.width, s.channels, values);
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
            add_product<N>(sums[tap],
                           read(from.template load_pack<N>(image_line(y) + x_at * s.channels)), d);
        }
      }
    }
  }
};

}  // namespace muster::compute::cuda
