#include "tests/unit/trainer/compute/cpu/plain_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <vector>

#include "trainer/compute/random.h"

namespace muster::compute::cpu {
namespace {

float as_float(double number) {
  return static_cast<float>(number);
}

// To the nearest bfloat16, ties to even.
uint16_t to_half(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float from_half(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}
// The halves of an array of pairs.
uint16_t* halves(float* pairs) {
  return reinterpret_cast<uint16_t*>(pairs);
}
const uint16_t* halves(const float* pairs) {
  return reinterpret_cast<const uint16_t*>(pairs);
}

void for_all(int64_t rows, int64_t columns, const std::function<void(int64_t, int64_t)>& function) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) function(r, c);
}

void put(float& to, double number, bool accumulate) {
  to = as_float(accumulate ? to + number : number);
}

void multiply(const Gemm& g, int64_t depth, const std::function<double(int64_t, int64_t)>& a,
              const std::function<double(int64_t, int64_t)>& b) {
  for_all(g.m, g.n, [&](int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t p = 0; p < depth; ++p) sum += a(i, p) * b(p, j);
    put(g.c[i * g.ldc + j], sum, g.accumulate);
  });
}
void gemm(const Gemm& g) {
  multiply(
      g, g.k, [&](int64_t i, int64_t p) { return g.a[i * g.a_row + p * g.a_column]; },
      [&](int64_t p, int64_t j) { return g.b[p * g.ldb + j]; });
}
void gemm_pairs(const Gemm& g) {
  multiply(
      g, 2 * g.k,
      [&](int64_t i, int64_t p) {
        return from_half(halves(g.a)[2 * (i * g.a_row + p / 2 * g.a_column) + p % 2]);
      },
      [&](int64_t p, int64_t j) {
        return from_half(halves(g.b)[2 * (p / 2 * g.ldb + j) + p % 2]);
      });
}
void pack_rows(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out,
               int64_t ldo) {
  for_all(rows, columns + columns % 2, [&](int64_t r, int64_t c) {
    halves(out)[2 * r * ldo + c] = c < columns ? to_half(in[r * ldi + c]) : uint16_t{0};
  });
}
void pack_row_pairs(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out,
                    int64_t ldo) {
  for_all(rows + rows % 2, columns, [&](int64_t r, int64_t c) {
    halves(out)[2 * (r / 2 * ldo + c) + r % 2] = r < rows ? to_half(in[r * ldi + c]) : uint16_t{0};
  });
}
void to_bfloat16(int64_t n, const float* in, void* out) {
  for (int64_t i = 0; i < n; ++i) static_cast<uint16_t*>(out)[i] = to_half(in[i]);
}

void sparse_forward(const SparseForward& s) {
  for_all(s.rows, s.n, [&](int64_t r, int64_t j) { s.y[r * s.ldy + j] = 0; });
  int64_t entry = 0;
  for_all(s.blocks, s.rows, [&](int64_t block, int64_t r) {
    for (int64_t i = 0; i < s.list.counts[block * s.rows + r]; ++i, ++entry)
      for (int64_t j = 0; j < s.n; ++j)
        s.y[r * s.ldy + j] += s.list.values[entry] * s.w[s.list.indices[entry] * s.ldw + j];
  });
}
void sparse_weight_gradient(const SparseWeightGradient& s) {
  for_all(s.end - s.begin, s.n, [&](int64_t f, int64_t j) {
    const int64_t k = s.begin + f;
    double sum = 0;
    for (int64_t r = 0; r < 32 * s.words; ++r)
      if (s.masks[k * s.words + r / 32] >> r % 32 & 1)
        sum += double{s.x[r * s.ldx + k]} * s.dy[r * s.ldy + j];
    s.g[f * s.ldg + j] = as_float(sum);
  });
}

void convert_bytes(int64_t n, const uint8_t* in, float scale, float offset, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]) * scale + offset;
}
void convert_floats(int64_t n, const float* in, float scale, float offset, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] * scale + offset;
}
int64_t count_nonzero(int64_t n, const float* in) {
  return n - std::count(in, in + n, 0.0f);
}
int64_t list_nonzeros(const ListNonzeros& l) {
  int64_t count = 0, lists = 0;
  std::fill_n(l.masks, l.end * l.words, 0u);
  for (int64_t first = l.begin; first < l.end; first += kSlot) {
    for (int64_t r = 0; r < l.rows; ++r) {
      const int64_t before = count;
      for (int64_t f = first; f < std::min(first + kSlot, l.end); ++f) {
        if (l.x[r * l.ldx + f] == 0) continue;
        l.list.indices[count] = static_cast<int32_t>(f);
        l.list.values[count++] = l.x[r * l.ldx + f];
        l.masks[f * l.words + r / 32] |= 1u << r % 32;
      }
      l.list.counts[lists++] = static_cast<int32_t>(count - before);
    }
  }
  return count;
}

void transpose(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out,
               int64_t ldo) {
  for_all(rows, columns, [&](int64_t r, int64_t c) { out[c * ldo + r] = in[r * ldi + c]; });
}
void transpose_back(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out,
                    int64_t ldo, bool accumulate) {
  for_all(rows, columns,
          [&](int64_t r, int64_t c) { put(out[r * ldo + c], in[c * ldi + r], accumulate); });
}
void sum_parts(int64_t rows, int64_t columns, int64_t parts, int64_t part_stride, const float* in,
               int64_t ldi, float* out, int64_t ldo) {
  for_all(rows, columns, [&](int64_t r, int64_t c) {
    double sum = 0;
    for (int64_t p = 0; p < parts; ++p) sum += in[p * part_stride + r * ldi + c];
    out[r * ldo + c] = as_float(sum);
  });
}
void sum_rows(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out) {
  for (int64_t c = 0; c < columns; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += in[r * ldi + c];
    out[c] = as_float(sum);
  }
}

// Calls function(place, number of the window's element, float of the image, or -1 outside) for one
// channel of each element of each window, row by row.
void for_windows(const Sliding& s, const std::function<void(int64_t, int64_t, int64_t)>& function) {
  for (int64_t place = 0; place < places_of(s); ++place) {
    for_all(s.window_height, s.window_width, [&](int64_t r, int64_t k) {
      const int64_t y = place / s.out_width * s.down - s.top + r;
      const int64_t x = place % s.out_width * s.right - s.left + k;
      const bool inside = y >= 0 && y < s.height && x >= 0 && x < s.width;
      function(place, r * s.window_width + k, inside ? (y * s.width + x) * s.channels : -1);
    });
  }
}
void patches(const Patches& p, const std::function<void(float*, float&)>& function) {
  const int64_t channels = p.sliding.channels;
  for_windows(p.sliding, [&](int64_t place, int64_t element, int64_t at) {
    if (place < p.begin || place >= p.end) return;
    for (int64_t c = 0; c < channels; ++c)
      function(at < 0 ? nullptr : p.image + at + c,
               p.matrix[(place - p.begin) * p.ld + element * channels + c]);
  });
}
void gather_patches(const Patches& p) {
  patches(p, [](const float* image, float& matrix) { matrix = image == nullptr ? 0 : *image; });
}
void scatter_patches(const Patches& p) {
  patches(p, [](float* image, const float& matrix) {
    if (image != nullptr) *image += matrix;
  });
}

// Winograd's matrices for the points 0, +-sqrt(1/2), +-sqrt(2) and infinity.
using Matrix = std::vector<std::vector<double>>;
const double kHalf = std::sqrt(0.5), kTwo = std::sqrt(2.0);
const Matrix kInput{{1, 0, -2.5, 0, 1, 0},
                    {0, -2 * kHalf, -2, kHalf, 1, 0},
                    {0, 2 * kHalf, -2, -kHalf, 1, 0},
                    {0, -kTwo / 2, -0.5, kTwo, 1, 0},
                    {0, kTwo / 2, -0.5, -kTwo, 1, 0},
                    {0, 1, 0, -2.5, 0, 1}};
const Matrix kOutput{{1, 1, 1, 1, 1, 0},
                     {0, kHalf, -kHalf, kTwo, -kTwo, 0},
                     {0, 0.5, 0.5, 2, 2, 0},
                     {0, kHalf / 2, -kHalf / 2, 2 * kTwo, -2 * kTwo, 1}};
const Matrix kKernel{{1, 0, 0},
                     {-2.0 / 3, -kTwo / 3, -1.0 / 3},
                     {-2.0 / 3, kTwo / 3, -1.0 / 3},
                     {1.0 / 6, kTwo / 6, 1.0 / 3},
                     {1.0 / 6, -kTwo / 6, 1.0 / 3},
                     {0, 0, 1}};
Matrix transposed(const Matrix& m) {
  Matrix t(m[0].size(), std::vector<double>(m.size()));
  for (size_t i = 0; i < m.size(); ++i)
    for (size_t j = 0; j < m[0].size(); ++j) t[j][i] = m[i][j];
  return t;
}
// Calls to(tile, row, column, channel, number) with the elements of m * square * m^T.
void transform(const WinogradTiles& w, const Matrix& m, bool from_image,
               const std::function<void(int64_t, int64_t, int64_t, int64_t, double)>& to) {
  const auto size = static_cast<int64_t>(m.size()), from = static_cast<int64_t>(m[0].size());
  for_all(w.tiles, w.channels, [&](int64_t t, int64_t channel) {
    for_all(size, size, [&](int64_t r, int64_t c) {
      double sum = 0;
      for_all(from, from, [&](int64_t i, int64_t j) {
        const float x =
            from_image ? w.image[i * w.row + (t * kWinogradTile + j) * w.place + channel]
                       : w.spectrum[t * w.tile + (i * kWinogradSquare + j) * w.plane + channel];
        sum += m[static_cast<size_t>(r)][static_cast<size_t>(i)] *
               m[static_cast<size_t>(c)][static_cast<size_t>(j)] * x;
      });
      to(t, r, c, channel, sum);
    });
  });
}
void to_spectrum(const WinogradTiles& w, const Matrix& m) {
  transform(w, m, true, [&](int64_t t, int64_t r, int64_t c, int64_t channel, double sum) {
    w.spectrum[t * w.tile + (r * kWinogradSquare + c) * w.plane + channel] = as_float(sum);
  });
}
void to_image(const WinogradTiles& w, const Matrix& m, int64_t rows, int64_t columns,
              bool accumulate) {
  transform(w, m, false, [&](int64_t t, int64_t r, int64_t c, int64_t channel, double sum) {
    const int64_t column = t * kWinogradTile + c;
    if (r < rows && column < columns)
      put(w.image[r * w.row + column * w.place + channel], sum, accumulate);
  });
}
void winograd_input(const WinogradTiles& w) {
  to_spectrum(w, kInput);
}
void winograd_output_gradient(const WinogradTiles& w) {
  to_spectrum(w, transposed(kOutput));
}
void winograd_kernel(const WinogradTiles& w) {
  to_spectrum(w, kKernel);
}
void winograd_output(const WinogradTiles& w, int64_t rows, int64_t columns) {
  to_image(w, kOutput, rows, columns, false);
}
void winograd_input_gradient(const WinogradTiles& w) {
  to_image(w, transposed(kInput), 6, 6 + 4 * w.tiles, true);
}
void winograd_kernel_gradient(const WinogradTiles& w) {
  to_image(w, transposed(kKernel), 3, 3, false);
}

// Calls function(output column, row of the window, input column, weight) for what a row of windows
// covers within the width.
void for_row(const Sliding& s,
             const std::function<void(int64_t, int64_t, int64_t, int64_t)>& function) {
  for_all(s.out_width, s.window_height, [&](int64_t ox, int64_t r) {
    for (int64_t k = 0; k < s.window_width; ++k) {
      const int64_t x = ox * s.right - s.left + k;
      if (x >= 0 && x < s.width) function(ox, r, x, r * s.window_width + k);
    }
  });
}
void depthwise_row(const DepthwiseRow& d) {
  const int64_t channels = d.sliding.channels;
  std::fill_n(d.y, d.sliding.out_width * channels, 0.0f);
  for_row(d.sliding, [&](int64_t ox, int64_t r, int64_t x, int64_t w) {
    for (int64_t c = 0; c < channels; ++c)
      d.y[ox * channels + c] += d.x[r][x * channels + c] * d.w[w * channels + c];
  });
}
void depthwise_weight_gradient_row(const DepthwiseRow& d) {
  const int64_t channels = d.sliding.channels;
  for_row(d.sliding, [&](int64_t ox, int64_t r, int64_t x, int64_t w) {
    for (int64_t c = 0; c < channels; ++c)
      d.dw[w * channels + c] += d.x[r][x * channels + c] * d.dy[ox * channels + c];
  });
}
void depthwise_input_gradient_row(const DepthwiseGradientRow& d) {
  const int64_t channels = d.sliding.channels;
  if (!d.accumulate) std::fill_n(d.dx, d.sliding.width * channels, 0.0f);
  for_row(d.sliding, [&](int64_t ox, int64_t r, int64_t x, int64_t w) {
    if (d.dy[r] == nullptr) return;
    for (int64_t c = 0; c < channels; ++c)
      d.dx[x * channels + c] += d.dy[r][ox * channels + c] * d.w[w * channels + c];
  });
}

// Calls function(float of the output, floats of the image that its window covers).
void for_pooled(const Pool& p,
                const std::function<void(int64_t, const std::vector<int64_t>&)>& function) {
  const Sliding& s = p.sliding;
  std::vector<std::vector<int64_t>> covered(static_cast<size_t>(places_of(s)));
  for_windows(s, [&](int64_t place, int64_t, int64_t at) {
    if (at >= 0) covered[static_cast<size_t>(place)].push_back(at);
  });
  for_all(places_of(s), s.channels, [&](int64_t place, int64_t c) {
    if (place / s.out_width < p.begin || place / s.out_width >= p.end) return;
    std::vector<int64_t> here = covered[static_cast<size_t>(place)];
    for (int64_t& at : here) at += c;
    function(place * s.channels + c, here);
  });
}
int64_t largest(const Pool& p, const std::vector<int64_t>& covered) {
  return *std::ranges::max_element(covered, {}, [&](int64_t at) { return p.x[at]; });
}
void max_pool(const Pool& p) {
  for_pooled(p, [&](int64_t out, const auto& in) { p.y[out] = p.x[largest(p, in)]; });
}
void max_pool_gradient(const Pool& p) {
  for_pooled(p, [&](int64_t out, const auto& in) { p.dx[largest(p, in)] += p.dy[out]; });
}
void average_pool(const Pool& p) {
  for_pooled(p, [&](int64_t out, const auto& in) {
    double sum = 0;
    for (const int64_t at : in) sum += p.x[at];
    p.y[out] = as_float(sum / static_cast<double>(in.size()));
  });
}
void average_pool_gradient(const Pool& p) {
  for_pooled(p, [&](int64_t out, const auto& in) {
    for (const int64_t at : in) p.dx[at] += p.dy[out] / static_cast<float>(in.size());
  });
}

template <double (*kActivation)(double)>
void bias(int64_t rows, int64_t columns, float* y, int64_t ldy, const float* bias) {
  for_all(rows, columns, [&](int64_t r, int64_t c) {
    const double sum = double{y[r * ldy + c]} + (bias == nullptr ? 0 : bias[c]);
    y[r * ldy + c] = as_float(kActivation(sum));
  });
}
double linear(double x) {
  return x;
}
double relu(double x) {
  return std::max(x, 0.0);
}
double relu6(double x) {
  return std::clamp(x, 0.0, 6.0);
}
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
template <double (*kSlope)(double)>
void slope(int64_t rows, int64_t columns, const float* y, int64_t ldy, const float* dy, float* dx,
           bool accumulate) {
  for_all(rows, columns, [&](int64_t r, int64_t c) {
    const int64_t at = r * ldy + c;
    put(dx[at], dy[at] * kSlope(y[at]), accumulate);
  });
}
double relu_slope(double y) {
  return y > 0 ? 1 : 0;
}
double relu6_slope(double y) {
  return y > 0 && y < 6 ? 1 : 0;
}
double sigmoid_slope(double y) {
  return y * (1 - y);
}

void copy(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out, int64_t ldo,
          bool accumulate) {
  for_all(rows, columns,
          [&](int64_t r, int64_t c) { put(out[r * ldo + c], in[r * ldi + c], accumulate); });
}
// The hash is part of what is promised: the same features are kept on all backends.
uint32_t hash_of(uint32_t feature, uint64_t key) {
  uint32_t h = feature * 0x9E3779B1u ^ static_cast<uint32_t>(key);
  h = (h ^ h >> 16) * 0x7FEB352Du;
  h = ((h ^ h >> 15) + static_cast<uint32_t>(key >> 32)) * 0x846CA68Bu;
  h = (h ^ h >> 16) * 0x7FEB352Du;
  return h ^ h >> 15;
}
void dropout(int64_t n, const float* in, float* out, uint64_t key, int64_t first,
             uint32_t threshold, float scale, bool accumulate) {
  for (int64_t i = 0; i < n; ++i) {
    const bool kept = hash_of(static_cast<uint32_t>(first + i), key) >> 8 >= threshold;
    put(out[i], kept ? in[i] * scale : 0, accumulate);
  }
}

// Calls function(offset) for each position of a column.
void for_positions(const Normalization& n, int64_t c,
                   const std::function<void(int64_t)>& function) {
  for_all(n.samples, n.outer,
          [&](int64_t r, int64_t o) { function(r * n.sample_stride + o * n.outer_stride + c); });
}
void statistics(const Normalization& n) {
  const auto count = static_cast<double>(n.samples * n.outer);
  for (int64_t c = 0; c < n.columns; ++c) {
    double sum = 0, squares = 0;
    for_positions(n, c, [&](int64_t at) { sum += n.x[at]; });
    for_positions(n, c, [&](int64_t at) { squares += std::pow(n.x[at] - sum / count, 2); });
    n.mean[c] = as_float(sum / count);
    n.inverse_deviation[c] = as_float(squares / count);
  }
}
void inverse_deviation(int64_t n, const float* variance, float epsilon, float* out) {
  for (int64_t c = 0; c < n; ++c) out[c] = as_float(1 / std::sqrt(double{variance[c]} + epsilon));
}
void normalize(const Normalization& n) {
  for (int64_t c = 0; c < n.columns; ++c) {
    for_positions(n, c, [&](int64_t at) {
      const double standard = (double{n.x[at]} - n.mean[c]) * n.inverse_deviation[c];
      n.y[at] = as_float(standard * n.gamma[c] + n.beta[c]);
    });
  }
}
// Ioffe and Szegedy 2015, section 3: the gradient through mean and variance.
void normalize_gradient(const Normalization& n) {
  const auto count = static_cast<double>(n.samples * n.outer);
  for (int64_t c = 0; c < n.columns; ++c) {
    const auto standard = [&](int64_t at) {
      return (double{n.x[at]} - n.mean[c]) * n.inverse_deviation[c];
    };
    double dbeta = 0, dgamma = 0;
    for_positions(n, c, [&](int64_t at) {
      dbeta += n.dy[at];
      dgamma += n.dy[at] * standard(at);
    });
    n.dbeta[c] = as_float(dbeta);
    n.dgamma[c] = as_float(dgamma);
    if (n.dx == nullptr) continue;
    for_positions(n, c, [&](int64_t at) {
      const double rest = n.dy[at] - dbeta / count - standard(at) * dgamma / count;
      put(n.dx[at], double{n.gamma[c]} * n.inverse_deviation[c] * rest, n.accumulate);
    });
  }
}
void scale_gradient(const Normalization& n) {
  for (int64_t c = 0; c < n.columns; ++c) {
    for_positions(n, c, [&](int64_t at) {
      put(n.dx[at], double{n.dy[at]} * n.gamma[c] * n.inverse_deviation[c], n.accumulate);
    });
  }
}

float number_at(const void* numbers, bool half, int64_t at) {
  return half ? from_half(static_cast<const uint16_t*>(numbers)[at])
              : static_cast<const float*>(numbers)[at];
}
void round_first(void* numbers, const float* unrounded, int64_t count) {
  if (unrounded != nullptr) to_bfloat16(count, unrounded, numbers);
}
// The numbers of one place and channel of a tile: y is not clamped yet, and `at` is their offset.
struct Place {
  int64_t at;
  double z, y, g;
};
Place place_of(const NormalizedTile& t, int64_t r, int64_t c) {
  Place p{r * t.channels + c, 0, 0, 0};
  p.z = number_at(t.z, t.half, p.at);
  p.y = p.z * t.scale[c] + t.shift[c];
  p.g = p.y > t.low && p.y < t.high ? number_at(t.dy, t.half, p.at) : 0.0f;
  return p;
}
void normalized_values(const NormalizedTile& t) {
  for_all(t.places, t.channels, [&](int64_t r, int64_t c) {
    const Place p = place_of(t, r, c);
    t.y[p.at] = as_float(std::clamp(p.y, double{t.low}, double{t.high}));
  });
}
void normalized_gradient(const NormalizedTile& t) {
  for_all(t.places, t.channels, [&](int64_t r, int64_t c) {
    const Place p = place_of(t, r, c);
    t.dz[p.at] = as_float(p.g * t.scale[c] - p.z * t.slope[c] - t.offset[c]);
  });
}
void normalized_sums(const NormalizedTile& t) {
  round_first(t.dy, t.unrounded, t.places * t.channels);
  for_all(t.places, t.channels, [&](int64_t r, int64_t c) {
    const Place p = place_of(t, r, c);
    t.sums[c] += as_float(p.g);
    t.sums[t.channels + c] += as_float(p.g * (p.z - t.mean[c]));
  });
}
void normalized_statistics(const TileStatistics& t) {
  round_first(t.z, t.unrounded, t.places * t.channels);
  for (int64_t c = 0; c < t.channels; ++c) {
    const double before = t.before, places = static_cast<double>(t.places);
    const auto z = [&](int64_t r) { return number_at(t.z, t.half, r * t.channels + c); };
    double sum = before * t.mean[c];
    for (int64_t r = 0; r < t.places; ++r) sum += z(r);
    const double mean = sum / (before + places);
    double spread = t.spread[c] + before * std::pow(t.mean[c] - mean, 2);
    for (int64_t r = 0; r < t.places; ++r) spread += std::pow(z(r) - mean, 2);
    t.mean[c] = as_float(mean);
    t.spread[c] = as_float(spread);
  }
}
// Packs the floats that `kernel` writes to the tile's member `to`.
void pack_floats(NormalizedTile t, void (*kernel)(const NormalizedTile&),
                 float* NormalizedTile::*to) {
  std::vector<float> floats(static_cast<size_t>(t.places * t.channels));
  t.*to = floats.data();
  kernel(t);
  pack_rows(t.places, t.channels, floats.data(), t.channels, t.rows, (t.channels + 1) / 2);
  pack_row_pairs(t.places, t.channels, floats.data(), t.channels, t.row_pairs, t.channels);
}
void normalized_value_pairs(const NormalizedTile& t) {
  pack_floats(t, normalized_values, &NormalizedTile::y);
}
void normalized_gradient_pairs(const NormalizedTile& t) {
  pack_floats(t, normalized_gradient, &NormalizedTile::dz);
}

float softmax(int64_t n, const float* x, float* out, int64_t label) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i]);
  for (int64_t i = 0; i < n; ++i) out[i] = as_float(std::exp(x[i]) / sum);
  return label < 0 ? 0 : as_float(std::log(sum) - x[label]);
}
void softmax_gradient(int64_t n, const float* y, const float* dy, float* dx, bool accumulate) {
  double inner = 0;
  for (int64_t i = 0; i < n; ++i) inner += double{y[i]} * dy[i];
  for (int64_t i = 0; i < n; ++i) put(dx[i], y[i] * (dy[i] - inner), accumulate);
}
float squared_error(int64_t n, const float* y, const float* target, float* gradient) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double difference = double{y[i]} - target[i];
    gradient[i] = as_float(2 * difference / static_cast<double>(n));
    sum += difference * difference;
  }
  return as_float(sum / static_cast<double>(n));
}

// The mean gradient after L2 and clipping.
double shaped(const UpdateRule& r, double gradient, double parameter) {
  const double mean = gradient * r.gradient_scale;
  if (!r.shaped) return mean;
  return r.clip_factor * std::clamp(mean + r.l2 * parameter, double{-r.most}, double{r.most});
}
// Adam's m, v and direction.
struct Moments {
  double m, v;
  double direction(const UpdateRule& r) const { return m / (std::sqrt(v) + r.epsilon); }
};
Moments moments(const UpdateRule& r, double m, double v, double g) {
  return {r.beta1 * m + (1 - r.beta1) * g, r.beta2 * v + (1 - r.beta2) * g * g};
}
void update_one(const Update& u, int64_t at, double gradient) {
  const UpdateRule& r = u.rule;
  double p = u.parameters[at];
  const double g = shaped(r, gradient, p);
  p -= r.decay * p;
  if (r.rule == Rule::sgd) {
    p -= r.rate * g;
  } else if (r.rule == Rule::adam) {
    const Moments next = moments(r, u.first[at], u.second[at], g);
    p -= r.rate * next.direction(r);
    u.first[at] = as_float(next.m);
    u.second[at] = as_float(next.v);
  } else if (r.rule == Rule::rms_prop) {
    const double s = r.beta2 * u.first[at] + (1 - r.beta2) * g * g;
    const double v = r.momentum * u.second[at] + r.rate * g / std::sqrt(s + r.epsilon);
    p -= v;
    u.first[at] = as_float(s);
    u.second[at] = as_float(v);
  } else {
    const double v = r.momentum * u.first[at] - r.rate * g;
    p += r.rule == Rule::nesterov ? r.momentum * v - r.rate * g : v;
    u.first[at] = as_float(v);
  }
  u.parameters[at] = as_float(p);
  if (r.averaged) u.average[at] += as_float(r.average_taken * (p - u.average[at]));
}
void update(const Update& u) {
  for_all(u.rows, u.columns, [&](int64_t r, int64_t c) {
    update_one(u, r * u.stride + c, u.gradients[r * u.gradient_stride + c]);
  });
}
void gemm_update(const Gemm& g, const Update& u) {
  std::vector<float> gradients(static_cast<size_t>(g.m * g.n));
  Gemm to_gradients = g;
  to_gradients.c = gradients.data();
  to_gradients.ldc = g.n;
  to_gradients.accumulate = false;
  gemm(to_gradients);
  Update whole = u;
  whole.rows = g.m;
  whole.columns = g.n;
  whole.gradients = gradients.data();
  whole.gradient_stride = g.n;
  update(whole);
}
// The last feature's gradient stays in s.g.
void sparse_update(const SparseWeightGradient& s, const Update& u) {
  for (int64_t k = s.begin; k < s.end; ++k) {
    SparseWeightGradient one = s;
    one.begin = k;
    one.end = k + 1;
    sparse_weight_gradient(one);
    for (int64_t c = 0; c < s.n; ++c) update_one(u, (k - s.begin) * u.stride + c, s.g[c]);
  }
}
void measure(const Measurement& m, double* parameters, double* direction) {
  *parameters = *direction = 0;
  for (int64_t i = 0; i < m.count; ++i) {
    const double p = m.parameters[i], g = shaped(m.rule, m.gradients[i], p);
    const Moments next = moments(m.rule, m.first[i], m.second[i], g);
    *parameters += p * p;
    *direction += std::pow(m.rule.rate * next.direction(m.rule) + m.rule.decay * p, 2);
  }
}
double measure_gradient(const Measurement& m) {
  double sum = 0;
  for (int64_t i = 0; i < m.count; ++i)
    sum += std::pow(shaped(m.rule, m.gradients[i], m.parameters[i]), 2);
  return sum;
}
void update_state(int64_t n, float momentum, float inverse_rows, float* state, const float* batch) {
  for (int64_t i = 0; i < n; ++i)
    state[i] = momentum * state[i] + (1 - momentum) * inverse_rows * batch[i];
}

constexpr auto bias_linear = bias<linear>;
constexpr auto bias_relu = bias<relu>;
constexpr auto bias_relu6 = bias<relu6>;
constexpr auto bias_sigmoid = bias<sigmoid>;
constexpr auto relu_gradient = slope<relu_slope>;
constexpr auto relu6_gradient = slope<relu6_slope>;
constexpr auto sigmoid_gradient = slope<sigmoid_slope>;

}  // namespace

Kernels plain_kernels() {
  Kernels k{};
#define MUSTER_ENTER(kernel) k.kernel = kernel;
  MUSTER_KERNELS(MUSTER_ENTER)
#undef MUSTER_ENTER
  return k;
}

const host::Arithmetic& plain_arithmetic() {
  static constexpr host::Arithmetic kPlain{
      [](int64_t n, const float* a, const float* b, float* out) {
        for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
      },
      to_bfloat16,
      [](int64_t n, const void* in, float* out) {
        for (int64_t i = 0; i < n; ++i) out[i] = from_half(static_cast<const uint16_t*>(in)[i]);
      },
      [](int64_t n, const float* in, float* out) {
        for (int64_t i = 0; i < n; ++i) out[i] = from_half(to_half(in[i]));
      }};
  return kPlain;
}

}  // namespace muster::compute::cpu
