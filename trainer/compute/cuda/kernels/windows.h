#pragma once

#include "trainer/compute/cuda/kernels/normalized.h"
#include "trainer/compute/sliding.h"

namespace muster::compute::cuda {

// Windows over images, [samples, height, width, channels] without gaps.

// A Sliding in numbers of 32 bits.
struct Slide {
  int height, width, channels;
  int out_height, out_width;
  int window_height, window_width;
  int down, right;
  int top, left;

  Slide(const Sliding& s)
      : height(static_cast<int>(s.height)),
        width(static_cast<int>(s.width)),
        channels(static_cast<int>(s.channels)),
        out_height(static_cast<int>(s.out_height)),
        out_width(static_cast<int>(s.out_width)),
        window_height(static_cast<int>(s.window_height)),
        window_width(static_cast<int>(s.window_width)),
        down(static_cast<int>(s.down)),
        right(static_cast<int>(s.right)),
        top(static_cast<int>(s.top)),
        left(static_cast<int>(s.left)) {}
};

// Whether 0 <= i < size.
MUSTER_INLINE bool is_in(int i, int size) {
  return static_cast<unsigned>(i) < static_cast<unsigned>(size);
}

// Returns i, or the nearest number in [0, size).
MUSTER_INLINE int nearest(int i, int size) {
  return i < 0 ? 0 : i < size ? i : size - 1;
}

// A place of the output, or of the image, of one of the samples.
struct Place {
  int sample, y, x;
};
MUSTER_INLINE Place place_of_item(uint32_t item, int height, int width) {
  const uint32_t line = item / static_cast<uint32_t>(width);
  return {static_cast<int>(line / static_cast<uint32_t>(height)),
          static_cast<int>(line % static_cast<uint32_t>(height)),
          static_cast<int>(item % static_cast<uint32_t>(width))};
}

// Calls function(at, window) for each element of channel 0 that the window covers at a place of the
// output: `at` is the number of floats in the image before the element; `window`, the index of the
// window's place.
template <class Function>
MUSTER_INLINE void for_covered(const Slide& s, Place out, Function function) {
  for (int r = 0; r < s.window_height; ++r) {
    const int y = out.y * s.down - s.top + r;
    if (!is_in(y, s.height)) continue;
    for (int k = 0; k < s.window_width; ++k) {
      const int x = out.x * s.right - s.left + k;
      if (!is_in(x, s.width)) continue;
      function(((out.sample * s.height + y) * s.width + x) * s.channels, r * s.window_width + k);
    }
  }
}

// Returns, for one direction, the place of the output whose window begins at `at`; -1 if there is
// none.
MUSTER_INLINE int place_at(int at, int stride, int size) {
  if (at < 0 || at % stride != 0) return -1;
  return at / stride < size ? at / stride : -1;
}

// Calls function(place, window) for each place of the output at which the window covers a place of
// the image, in the order of the window's places: `place` is the number of the output's places
// before it.
template <class Function>
MUSTER_INLINE void for_covering(const Slide& s, Place in, Function function) {
  for (int r = 0; r < s.window_height; ++r) {
    const int y = place_at(in.y + s.top - r, s.down, s.out_height);
    if (y < 0) continue;
    for (int k = 0; k < s.window_width; ++k) {
      const int x = place_at(in.x + s.left - k, s.right, s.out_width);
      if (x < 0) continue;
      function((in.sample * s.out_height + y) * s.out_width + x, r * s.window_width + k);
    }
  }
}

// matrix[place, window, channel] = the part of the image under the window at a place; 0 outside the
// image, and after a place's numbers up to `stride`.
struct GatherPatches {
  Slide slide;
  int64_t samples;
  Reader image;
  Numbers matrix;
  int64_t stride;  // numbers from a place to the next place

  MUSTER_INLINE int64_t places() const { return samples * slide.out_height * slide.out_width; }
  // Whether each thread copies a pack of channels, and not a whole patch.
  MUSTER_INLINE bool in_packs() const { return pack_of(slide.channels) > 1; }
  MUSTER_INLINE Shape shape() const {
    return blocks_for(in_packs() ? places() * stride / pack_of(stride) : places());
  }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Slide& s = slide;
    if (!in_packs()) {
      const bool of_colours = s.channels == 3 && s.window_height == 3 && s.window_width == 3 &&
                              stride == 32 && image.scale == nullptr && !image.z.half();
      for_items(block, places(), [&](uint32_t place) {
        if (of_colours)
          copy_colours(place);
        else
          pack_of(stride) == 1 ? copy_patch<1>(place) : copy_patch<4>(place);
      });
      return;
    }
    with_packs(s.channels, image.z, matrix, [&]<int N>(Fixed<N>, auto from, auto to) {
      for_packs<N>(block, places(), stride, [&](int i, int column) {
        const int window = column / s.channels, channel = column % s.channels;
        const int r = window / s.window_width, k = window % s.window_width;
        const Place out = place_of_item(static_cast<uint32_t>(i) / static_cast<uint32_t>(stride),
                                        s.out_height, s.out_width);
        const int y = out.y * s.down - s.top + r, x = out.x * s.right - s.left + k;
        Pack<N> value{};
        if (r < s.window_height && is_in(y, s.height) && is_in(x, s.width))
          value = image.at<N>(channel)(from.template load_pack<N>(
              ((out.sample * s.height + y) * s.width + x) * s.channels + channel));
        to.template store_pack<N>(i, value);
      });
    });
  }

 private:
  // Copies a window of 3 x 3 places of three floats, as at the beginning of most networks, and five
  // zeros.
  MUSTER_INLINE void copy_colours(uint32_t place) const {
    const Slide& s = slide;
    const Place out = place_of_item(place, s.out_height, s.out_width);
    const int top = out.y * s.down - s.top, left = out.x * s.right - s.left;
    const auto from = image.z.as<false>();
    float values[32] = {};
    MUSTER_UNROLL_ALL
    for (int i = 0; i < 27; ++i) {
      const int y = top + i / 9, x = left + i / 3 % 3;
      const int line = (out.sample * s.height + nearest(y, s.height)) * s.width;
      const float value = from.load((line + nearest(x, s.width)) * 3 + i % 3);
      values[i] = is_in(y, s.height) && is_in(x, s.width) ? value : 0.0f;
    }
    MUSTER_UNROLL_ALL
    for (int i = 0; i < 32; i += 8)
      matrix.store_pack<8>(static_cast<int64_t>(place) * 32 + i,
                           {values[i], values[i + 1], values[i + 2], values[i + 3], values[i + 4],
                            values[i + 5], values[i + 6], values[i + 7]});
  }

  template <int N>
  MUSTER_INLINE void copy_patch(uint32_t place) const {
    const Slide& s = slide;
    const Place out = place_of_item(place, s.out_height, s.out_width);
    const int top = out.y * s.down - s.top, left = out.x * s.right - s.left;
    const int image_lines = out.sample * s.height;
    int r = 0, k = 0, c = 0;
    for (int i = 0; i < stride; i += N) {
      Pack<N> values{};
      MUSTER_UNROLL_ALL
      for (int j = 0; j < N; ++j) {
        const int y = top + r, x = left + k;
        const int at =
            ((image_lines + nearest(y, s.height)) * s.width + nearest(x, s.width)) * s.channels + c;
        const float value = image.load(at, c);
        const bool inside = r < s.window_height && is_in(y, s.height) && is_in(x, s.width);
        values.at[j] = inside ? value : 0.0f;
        if (++c < s.channels) continue;
        c = 0;
        if (++k < s.window_width) continue;
        k = 0;
        ++r;
      }
      matrix.store_pack<N>(static_cast<int>(place) * static_cast<int>(stride) + i, values);
    }
  }
};

// image (+)= for each place, the sum of the matrix's elements that GatherPatches would copy from
// this place.
struct ScatterPatches {
  Slide slide;
  int64_t samples;
  const float* matrix;
  int64_t stride;
  Numbers image;
  bool accumulate;

  MUSTER_INLINE int64_t places() const { return samples * slide.height * slide.width; }
  MUSTER_INLINE Shape shape() const {
    return blocks_for(places() * slide.channels / pack_of(slide.channels));
  }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    pack_of(slide.channels) == 1 ? run<1>(block) : run<4>(block);
  }

 private:
  template <int N, class Block>
  MUSTER_INLINE void run(Block& block) const {
    const Slide& s = slide;
    const int depth = static_cast<int>(stride);
    for_packs<N>(block, places(), s.channels, [&](int i, int channel) {
      Pack<N> sum = accumulate ? image.load_pack<N>(i) : Pack<N>{};
      const uint32_t place = static_cast<uint32_t>(i) / static_cast<uint32_t>(s.channels);
      for_covering(s, place_of_item(place, s.height, s.width), [&](int covering, int window) {
        const Pack<N> one =
            load_floats<N>(matrix + covering * depth + window * s.channels + channel);
        MUSTER_UNROLL_ALL
        for (int j = 0; j < N; ++j) sum.at[j] += one.at[j];
      });
      image.store_pack<N>(i, sum);
    });
  }
};

// y = for each channel, the largest value or the mean of the values in the window and in the image.
struct Pool {
  Slide slide;
  int64_t samples;
  bool largest;
  const float* x;
  float* y;

  MUSTER_INLINE int64_t items() const {
    return samples * slide.out_height * slide.out_width * slide.channels;
  }
  MUSTER_INLINE Shape shape() const { return blocks_for(items()); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Slide& s = slide;
    for_items(block, items(), [&](uint32_t i) {
      const int channel = static_cast<int>(i % static_cast<uint32_t>(s.channels));
      float result = 0, count = 0;
      for_covered(
          s, place_of_item(i / static_cast<uint32_t>(s.channels), s.out_height, s.out_width),
          [&](int at, int) {
            const float value = x[at + channel];
            result = !largest ? result + value : count == 0.0f ? value : maximum(result, value);
            count += 1.0f;
          });
      y[i] = largest ? result : result * (1.0f / count);
    });
  }
};

// dx (+)= the gradient of pooling. If several values are equally the largest, the first one gets
// the gradient.
struct PoolGradient {
  Slide slide;
  int64_t samples;
  bool largest;
  const float* x;
  const float* y;
  const float* dy;
  float* dx;
  bool accumulate;

  MUSTER_INLINE int64_t items() const {
    return samples * slide.height * slide.width * slide.channels;
  }
  MUSTER_INLINE Shape shape() const { return blocks_for(items()); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Slide& s = slide;
    for_items(block, items(), [&](uint32_t i) {
      const int channel = static_cast<int>(i % static_cast<uint32_t>(s.channels));
      float sum = accumulate ? dx[i] : 0.0f;
      for_covering(s, place_of_item(i / static_cast<uint32_t>(s.channels), s.height, s.width),
                   [&](int place, int) {
                     const Place out =
                         place_of_item(static_cast<uint32_t>(place), s.out_height, s.out_width);
                     sum += dy[place * s.channels + channel] *
                            share(out, static_cast<int>(i), channel);
                   });
      dx[i] = sum;
    });
  }

 private:
  // The share of the gradient at a place of the output that element i of the image gets.
  MUSTER_INLINE float share(Place out, int i, int channel) const {
    const Slide& s = slide;
    float count = 0;
    bool taken = false, mine = false;
    const float most =
        y[((out.sample * s.out_height + out.y) * s.out_width + out.x) * s.channels + channel];
    for_covered(s, out, [&](int at, int) {
      count += 1.0f;
      if (!largest || taken || x[at + channel] != most) return;
      taken = true;
      mine = at + channel == i;
    });
    return !largest ? 1.0f / count : mine ? 1.0f : 0.0f;
  }
};

}  // namespace muster::compute::cuda
