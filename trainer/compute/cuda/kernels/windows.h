#pragma once

#include "trainer/compute/cuda/kernels/normalized.h"
#include "trainer/compute/sliding.h"

namespace muster::compute::cuda {

// Windows over images, [samples, height, width, channels] without gaps.

// The window's rows or columns [begin, end) that lie in the image when it begins at `at`.
struct Covered {
  int64_t begin, end;
};
MUSTER_INLINE Covered covered(int64_t at, int64_t window, int64_t size) {
  const int64_t begin = at < 0 ? -at : 0;
  const int64_t end = at + window > size ? size - at : window;
  return {begin < end ? begin : end, end};
}

// A place of the output, or of the image, of one of the samples.
struct Place {
  int64_t sample, y, x;
};
MUSTER_INLINE Place place_of_item(int64_t item, int64_t height, int64_t width) {
  return {item / (height * width), item / width % height, item % width};
}

// Calls function(at, window) for each element of channel 0 that the window covers at a place of
// the output: `at` counts the floats of the image before it, `window` the window's places.
template <class Function>
MUSTER_INLINE void for_covered(const Sliding& s, Place out, Function function) {
  const int64_t y = out.y * s.down - s.top, x = out.x * s.right - s.left;
  const Covered rows = covered(y, s.window_height, s.height);
  const Covered columns = covered(x, s.window_width, s.width);
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t k = columns.begin; k < columns.end; ++k)
      function(((out.sample * s.height + y + r) * s.width + x + k) * s.channels,
               r * s.window_width + k);
}

// Calls function(place, window) for each place of the output at which the window covers a place of
// the image, in the order of the window's places: `place` counts the output's places before it.
template <class Function>
MUSTER_INLINE void for_covering(const Sliding& s, Place in, Function function) {
  for (int64_t r = 0; r < s.window_height; ++r) {
    const int64_t y = in.y + s.top - r;
    if (y < 0 || y % s.down != 0 || y / s.down >= s.out_height) continue;
    for (int64_t k = 0; k < s.window_width; ++k) {
      const int64_t x = in.x + s.left - k;
      if (x < 0 || x % s.right != 0 || x / s.right >= s.out_width) continue;
      function((in.sample * s.out_height + y / s.down) * s.out_width + x / s.right,
               r * s.window_width + k);
    }
  }
}

// matrix[place, window, channel] = what the window covers at a place; 0 outside the image.
struct GatherPatches {
  Sliding sliding;
  int64_t samples;
  Reader image;
  Numbers matrix;

  MUSTER_INLINE int64_t items() const {
    return samples * sliding.out_height * sliding.out_width * sliding.window_height *
           sliding.window_width * sliding.channels;
  }
  MUSTER_INLINE Shape shape() const { return blocks_for(items()); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Sliding& s = sliding;
    for_items(block, items(), [&](int64_t i) {
      const int64_t channel = i % s.channels, window = i / s.channels;
      const int64_t k = window % s.window_width;
      const int64_t r = window / s.window_width % s.window_height;
      const Place out =
          place_of_item(window / s.window_width / s.window_height, s.out_height, s.out_width);
      const int64_t y = out.y * s.down - s.top + r, x = out.x * s.right - s.left + k;
      const bool inside = y >= 0 && y < s.height && x >= 0 && x < s.width;
      const int64_t at = ((out.sample * s.height + y) * s.width + x) * s.channels + channel;
      matrix.store(i, inside ? image.load(at, channel) : 0.0f);
    });
  }
};

// image (+)= the sum of the matrix's elements that GatherPatches would copy from there.
struct ScatterPatches {
  Sliding sliding;
  int64_t samples;
  const float* matrix;
  Numbers image;
  bool accumulate;

  MUSTER_INLINE int64_t items() const {
    return samples * sliding.height * sliding.width * sliding.channels;
  }
  MUSTER_INLINE Shape shape() const { return blocks_for(items()); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Sliding& s = sliding;
    const int64_t depth = s.window_height * s.window_width * s.channels;
    for_items(block, items(), [&](int64_t i) {
      float sum = accumulate ? image.load(i) : 0.0f;
      for_covering(s, place_of_item(i / s.channels, s.height, s.width),
                   [&](int64_t place, int64_t window) {
                     sum += matrix[place * depth + window * s.channels + i % s.channels];
                   });
      image.store(i, sum);
    });
  }
};

// y = the convolution of each channel by itself; w is [window, channels].
struct Depthwise {
  Sliding sliding;
  int64_t samples;
  Reader x;
  const float* w;
  Numbers y;

  MUSTER_INLINE int64_t items() const {
    return samples * sliding.out_height * sliding.out_width * sliding.channels;
  }
  MUSTER_INLINE Shape shape() const { return blocks_for(items()); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Sliding& s = sliding;
    for_items(block, items(), [&](int64_t i) {
      const int64_t channel = i % s.channels;
      float sum = 0;
      for_covered(s, place_of_item(i / s.channels, s.out_height, s.out_width),
                  [&](int64_t at, int64_t window) {
                    const float value = x.load(at + channel, channel);
                    sum = fma(value, w[window * s.channels + channel], sum);
                  });
      y.store(i, sum);
    });
  }
};

// dx (+)= its gradient by the image.
struct DepthwiseInputGradient {
  Sliding sliding;
  int64_t samples;
  Numbers dy;
  const float* w;
  Numbers dx;
  bool accumulate;

  MUSTER_INLINE int64_t items() const {
    return samples * sliding.height * sliding.width * sliding.channels;
  }
  MUSTER_INLINE Shape shape() const { return blocks_for(items()); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Sliding& s = sliding;
    for_items(block, items(), [&](int64_t i) {
      const int64_t channel = i % s.channels;
      float sum = accumulate ? dx.load(i) : 0.0f;
      for_covering(s, place_of_item(i / s.channels, s.height, s.width),
                   [&](int64_t place, int64_t window) {
                     const float d = dy.load(place * s.channels + channel);
                     sum = fma(d, w[window * s.channels + channel], sum);
                   });
      dx.store(i, sum);
    });
  }
};

// Its gradient by w, as [parts, window, channels] sums over kPartRows places of the output each
// (column_sums.h).
struct DepthwiseWeightParts {
  Sliding sliding;
  int64_t samples;
  Reader x;
  Numbers dy;
  float* parts;

  MUSTER_INLINE int64_t places() const { return samples * sliding.out_height * sliding.out_width; }
  MUSTER_INLINE int64_t columns() const {
    return sliding.window_height * sliding.window_width * sliding.channels;
  }
  MUSTER_INLINE Shape shape() const { return blocks_for(parts_of(places()) * columns()); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Sliding& s = sliding;
    for_parts(block, places(), columns(),
              [&](int64_t part, int64_t column, int64_t begin, int64_t end) {
                const int64_t channel = column % s.channels, window = column / s.channels;
                const int64_t r = window / s.window_width, k = window % s.window_width;
                float sum = 0;
                for (int64_t place = begin; place < end; ++place) {
                  const Place out = place_of_item(place, s.out_height, s.out_width);
                  const int64_t y = out.y * s.down - s.top + r, x_at = out.x * s.right - s.left + k;
                  if (y < 0 || y >= s.height || x_at < 0 || x_at >= s.width) continue;
                  const int64_t at =
                      ((out.sample * s.height + y) * s.width + x_at) * s.channels + channel;
                  sum = fma(x.load(at, channel), dy.load(place * s.channels + channel), sum);
                }
                parts[part * columns() + column] = sum;
              });
  }
};

// y = the largest value of each channel, or the mean, of what lies in the window and in the image.
struct Pool {
  Sliding sliding;
  int64_t samples;
  bool largest;
  const float* x;
  float* y;

  MUSTER_INLINE int64_t items() const {
    return samples * sliding.out_height * sliding.out_width * sliding.channels;
  }
  MUSTER_INLINE Shape shape() const { return blocks_for(items()); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Sliding& s = sliding;
    for_items(block, items(), [&](int64_t i) {
      const int64_t channel = i % s.channels;
      float result = 0, count = 0;
      for_covered(
          s, place_of_item(i / s.channels, s.out_height, s.out_width), [&](int64_t at, int64_t) {
            const float value = x[at + channel];
            result = !largest ? result + value : count == 0.0f ? value : maximum(result, value);
            count += 1.0f;
          });
      y[i] = largest ? result : result * (1.0f / count);
    });
  }
};

// dx (+)= its gradient. That of the largest value goes to the first of several equal ones.
struct PoolGradient {
  Sliding sliding;
  int64_t samples;
  bool largest;
  const float* x;
  const float* y;
  const float* dy;
  float* dx;
  bool accumulate;

  MUSTER_INLINE int64_t items() const {
    return samples * sliding.height * sliding.width * sliding.channels;
  }
  MUSTER_INLINE Shape shape() const { return blocks_for(items()); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Sliding& s = sliding;
    for_items(block, items(), [&](int64_t i) {
      const int64_t channel = i % s.channels;
      float sum = accumulate ? dx[i] : 0.0f;
      for_covering(s, place_of_item(i / s.channels, s.height, s.width),
                   [&](int64_t place, int64_t) {
                     const Place out = place_of_item(place, s.out_height, s.out_width);
                     sum += dy[place * s.channels + channel] * share(out, i, channel);
                   });
      dx[i] = sum;
    });
  }

 private:
  // The share of the gradient at a place of the output that element i of the image gets.
  MUSTER_INLINE float share(Place out, int64_t i, int64_t channel) const {
    const Sliding& s = sliding;
    float count = 0;
    bool taken = false, mine = false;
    const float most =
        y[((out.sample * s.out_height + out.y) * s.out_width + out.x) * s.channels + channel];
    for_covered(s, out, [&](int64_t at, int64_t) {
      count += 1.0f;
      if (!largest || taken || x[at + channel] != most) return;
      taken = true;
      mine = at + channel == i;
    });
    return !largest ? 1.0f / count : mine ? 1.0f : 0.0f;
  }
};

}  // namespace muster::compute::cuda
