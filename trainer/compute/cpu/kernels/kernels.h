#pragma once

#include <cstdint>

#include "trainer/compute/sliding.h"
#include "trainer/compute/update_rule.h"

namespace muster::host {
enum class InstructionSet;  // instruction_set.h
}

namespace muster::compute::cpu {

// The inner loops, compiled once for each instruction set from the same source (*.inc) and chosen
// when an engine is built. Matrices are row-major float32 with a leading dimension in floats. No
// function allocates memory, and none reads or writes outside the given columns.

// c[i, j] = sum over p of a[i * a_row + p * a_column] * b[p * ldb + j], with one accumulator for
// each output and p ascending. So it has the same bits as the sparse kernels, which skip zero
// terms.
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int64_t a_row = 0, a_column = 0;
  const float* b = nullptr;
  int64_t ldb = 0;
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;  // the sums begin with the content of c
};

// The nonzero elements of some columns of an activation. counts[block * rows + row] is the number
// of (feature, value) pairs of a row in a block of kSlot columns; the pairs of all blocks and rows
// lie one after the other without gaps.
constexpr int64_t kSlot = 32;
constexpr int64_t kSlack = 32;  // entries after the last one: compressing stores whole vectors

struct NonzeroList {
  int32_t* counts = nullptr;
  int32_t* indices = nullptr;  // features
  float* values = nullptr;
};

// Lists features [begin, end) of x, and the rows in which each feature is not zero: bit b of
// masks[f * words + w] is set if x[32 w + b, f] != 0.
struct ListNonzeros {
  int64_t rows = 0, begin = 0, end = 0;
  const float* x = nullptr;
  int64_t ldx = 0;
  NonzeroList list;
  int64_t words = 0;
  uint32_t* masks = nullptr;  // null: not wanted
};

// y[r, j] = sum over the listed features k of row r of value * w[k * ldw + j], r < rows, j < n.
struct SparseForward {
  int64_t rows = 0, n = 0, blocks = 0;
  NonzeroList list;
  const float* w = nullptr;
  int64_t ldw = 0;
  float* y = nullptr;
  int64_t ldy = 0;
};

// g[k - begin, j] = sum over rows r with bit r set in masks[k * words ...] of x[r, k] * dy[r, j].
struct SparseWeightGradient {
  int64_t begin = 0, end = 0;  // features
  int64_t n = 0, words = 0;
  const uint32_t* masks = nullptr;
  const float* x = nullptr;
  int64_t ldx = 0;
  const float* dy = nullptr;
  int64_t ldy = 0;
  float* g = nullptr;
  int64_t ldg = 0;
};

// A piece of a tensor before its update. `measure` uses an Adam rule, which would move the piece by
// -u; only `measure` uses first and second.
struct Measurement {
  UpdateRule rule;
  int64_t count = 0;
  const float* parameters = nullptr;
  const float* first = nullptr;
  const float* second = nullptr;
  const float* gradients = nullptr;
};

// Batch normalization over samples x outer positions of `columns` features: sample r's position o
// begins at r * sample_stride + o * outer_stride.
struct Normalization {
  int64_t samples = 0, outer = 1, columns = 0;
  int64_t sample_stride = 0, outer_stride = 0;
  const float* x = nullptr;
  float* y = nullptr;
  const float* dy = nullptr;
  float* dx = nullptr;  // null: not wanted
  bool accumulate = false;
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float* mean = nullptr;
  float* inverse_deviation = nullptr;  // 1 / sqrt(variance + epsilon)
  float* dgamma = nullptr;
  float* dbeta = nullptr;
};

// Row i of the matrix holds the floats that the window covers at place begin + i (places are
// counted along the output's rows): [window_height * window_width * channels] floats, with zeros
// where the window leaves the image.
struct Patches {
  Sliding sliding;
  int64_t begin = 0, end = 0;
  float* image = nullptr;
  float* matrix = nullptr;
  int64_t ld = 0;
};

// Winograd's convolution F(4 x 4, 3 x 3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", 2015): 4 x 4 places of the output, a tile, take 36 products of transformed numbers in
// place of 144. A transformation goes from squares of an image, tiles side by side, to 36 planes of
// a spectrum, or back: 6 x 6 places of the input (the next tile's begin four places further), 4 x 4
// of the output, or the 3 x 3 of a kernel, which is one tile. The polynomials are evaluated at 0,
// +-sqrt(1/2), +-sqrt(2) and infinity, which round less than the usual 0, +-1, +-2 and infinity.
// The products are those of matrices, one for each plane:
//   output = input * kernel, [tiles, filters]
//   gradient of the kernel = input^T * gradient of the output, [channels, filters]
//   gradient of the input = gradient of the output * kernel^T, [tiles, channels]
inline constexpr int64_t kWinogradTile = 4, kWinogradSquare = 6, kWinogradPlanes = 36;
struct WinogradTiles {
  int64_t tiles = 1, channels = 0;
  float* image = nullptr;      // the first square
  int64_t place = 0, row = 0;  // floats from place to place, and from row to row
  float* spectrum = nullptr;   // [tiles][36 planes][channels]
  int64_t tile = 0;            // floats from tile to tile of the spectrum
  int64_t plane = 0;           // floats from plane to plane of the spectrum
};

// A row of the output of a convolution of each channel by itself, [out_width, channels], and its
// gradients; w is [window_height * window_width, channels].
struct DepthwiseRow {
  Sliding sliding;
  const float* const* x = nullptr;  // the image's row under each row of the window, or zeros
  const float* w = nullptr;
  float* y = nullptr;
  const float* dy = nullptr;
  float* dw = nullptr;
};

// A row of the gradient of such a convolution's input, [width, channels].
struct DepthwiseGradientRow {
  Sliding sliding;
  // For each row of the window: the row of the output's gradient at which this window row covers
  // this row of the input; zeros or null if there is no such row.
  const float* const* dy = nullptr;
  const float* w = nullptr;
  float* dx = nullptr;
  bool accumulate = false;
};

// A tile of values for which only a convolution's raw outputs z are kept: batch normalization and
// activation together are y = min(max(z * scale + shift, low), high). All blocks are [places,
// channels] without gaps, or [channels].
struct NormalizedTile {
  int64_t places = 0, channels = 0;
  bool half = false;  // z and dy are bfloat16 instead of float
  const void* z = nullptr;
  const float* scale = nullptr;  // gamma / deviation
  const float* shift = nullptr;  // beta - mean * scale
  float low = 0, high = 0;
  float* y = nullptr;
  void* dy = nullptr;
  // For the sums: the mean of z, and [2, channels] sums over the places of g and g * (z - mean),
  // where g is dy inside the bounds and 0 elsewhere.
  const float* mean = nullptr;
  float* sums = nullptr;
  // Not null: floats that are first rounded to dy, which is bfloat16.
  const float* unrounded = nullptr;
  // For the gradient: dz = g * scale - z * slope - offset.
  const float* slope = nullptr;
  const float* offset = nullptr;
  float* dz = nullptr;
  // Memory for y or dz as bfloat16 in the layouts of pack_rows() and pack_row_pairs(): a row has
  // (channels + 1) / 2 pairs. Either may be null.
  float* rows = nullptr;
  float* row_pairs = nullptr;
};

// Mean of each channel and sum of squared distances from the mean, over `before` earlier places and
// the places of the tile z.
struct TileStatistics {
  int64_t places = 0, channels = 0;
  bool half = false;  // z is bfloat16 instead of float
  void* z = nullptr;
  // Not null: floats that are first rounded to z, which is bfloat16.
  const float* unrounded = nullptr;
  float before = 0;
  float* mean = nullptr;
  float* spread = nullptr;
};

struct Pool {
  Sliding sliding;
  int64_t begin = 0, end = 0;  // rows of the output
  const float* x = nullptr;
  float* y = nullptr;  // max_pool_gradient reads it
  const float* dy = nullptr;
  float* dx = nullptr;
};

struct Kernels {
  const char* name;
  int64_t lanes;

  void (*gemm)(const Gemm&);
  // The next five are null in instruction sets without products of bfloat16. In gemm_pairs, each
  // element of a and b is not a float but a pair of bfloat16, two neighbours along p; k is the
  // number of pairs. Sums are float32.
  void (*gemm_pairs)(const Gemm&);
  // Round floats, [rows, columns], to pairs: pack_rows, of two neighbours in a row, [rows, columns
  // / 2 rounded up]; pack_row_pairs, of two neighbours in a column, [rows / 2 rounded up, columns].
  // A number without a neighbour is paired with zero.
  void (*pack_rows)(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out,
                    int64_t ldo);
  void (*pack_row_pairs)(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out,
                         int64_t ldo);
  // Write y or dz to rows and row_pairs. z and dy must be bfloat16.
  void (*normalized_value_pairs)(const NormalizedTile&);
  void (*normalized_gradient_pairs)(const NormalizedTile&);
  // Rounds as host::Arithmetic::to_bfloat16 does; `out` is aligned to 2 bytes. With AVX-512 BF16 it
  // treats subnormal numbers as zero.
  void (*to_bfloat16)(int64_t n, const float* in, void* out);
  void (*sparse_forward)(const SparseForward&);
  void (*sparse_weight_gradient)(const SparseWeightGradient&);

  // out[i] = in[i] * scale + offset
  void (*convert_bytes)(int64_t n, const uint8_t* in, float scale, float offset, float* out);
  void (*convert_floats)(int64_t n, const float* in, float scale, float offset, float* out);
  int64_t (*count_nonzero)(int64_t n, const float* in);
  // Returns the number of listed elements.
  int64_t (*list_nonzeros)(const ListNonzeros&);

  // out[c, r] = in[r, c].
  void (*transpose)(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out,
                    int64_t ldo);
  // out[r, c] (+)= in[c, r].
  void (*transpose_back)(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out,
                         int64_t ldo, bool accumulate);
  // out[r, c] = sum over parts of in[part * part_stride + r * ldi + c], parts ascending.
  void (*sum_parts)(int64_t rows, int64_t columns, int64_t parts, int64_t part_stride,
                    const float* in, int64_t ldi, float* out, int64_t ldo);
  // out[c] = sum over rows of in[r, c], rows ascending.
  void (*sum_rows)(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out);

  // Copies the parts of an image that the window covers to the matrix.
  void (*gather_patches)(const Patches&);
  // Adds each element of the matrix to the place in the image from which gather_patches copies it.
  void (*scatter_patches)(const Patches&);
  // From image to spectrum: of the input, of the gradient of the output, and of the kernel.
  void (*winograd_input)(const WinogradTiles&);
  void (*winograd_output_gradient)(const WinogradTiles&);
  void (*winograd_kernel)(const WinogradTiles&);
  // From spectrum to image. The output has `rows` rows and `columns` columns from the first square
  // on; nothing is written outside them. The input's gradient is added to the image.
  void (*winograd_output)(const WinogradTiles&, int64_t rows, int64_t columns);
  void (*winograd_input_gradient)(const WinogradTiles&);
  void (*winograd_kernel_gradient)(const WinogradTiles&);
  void (*depthwise_row)(const DepthwiseRow&);
  // dw += the gradient of w, computed from x and dy.
  void (*depthwise_weight_gradient_row)(const DepthwiseRow&);
  // dx (+)= the gradient of x, computed from dy and w.
  void (*depthwise_input_gradient_row)(const DepthwiseGradientRow&);
  // Pools over the part of the window that lies in the image. The gradients are added to dx; if
  // several values are equally the largest, the first one gets the gradient.
  void (*max_pool)(const Pool&);
  void (*max_pool_gradient)(const Pool&);
  void (*average_pool)(const Pool&);
  void (*average_pool_gradient)(const Pool&);

  // y = activation(y + bias), in place; bias may be null. The activations are linear, relu, relu6
  // (at most 6), sigmoid.
  void (*bias_linear)(int64_t rows, int64_t columns, float* y, int64_t ldy, const float* bias);
  void (*bias_relu)(int64_t rows, int64_t columns, float* y, int64_t ldy, const float* bias);
  void (*bias_relu6)(int64_t rows, int64_t columns, float* y, int64_t ldy, const float* bias);
  void (*bias_sigmoid)(int64_t rows, int64_t columns, float* y, int64_t ldy, const float* bias);
  // dx (+)= dy * activation'(y), where y is the activation's output. dx may be dy.
  void (*relu_gradient)(int64_t rows, int64_t columns, const float* y, int64_t ldy, const float* dy,
                        float* dx, bool accumulate);
  void (*relu6_gradient)(int64_t rows, int64_t columns, const float* y, int64_t ldy,
                         const float* dy, float* dx, bool accumulate);
  void (*sigmoid_gradient)(int64_t rows, int64_t columns, const float* y, int64_t ldy,
                           const float* dy, float* dx, bool accumulate);
  // out (+)= in
  void (*copy)(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out, int64_t ldo,
               bool accumulate);
  // For one row: out (+)= in * scale where a hash of (key, feature) is at least `threshold` of
  // 2^24, else 0. The features are counted from `first`.
  void (*dropout)(int64_t n, const float* in, float* out, uint64_t key, int64_t first,
                  uint32_t threshold, float scale, bool accumulate);
  // Computes mean and variance (biased) over samples and positions; the variance goes to
  // inverse_deviation.
  void (*statistics)(const Normalization&);
  // out = 1 / sqrt(variance + epsilon)
  void (*inverse_deviation)(int64_t n, const float* variance, float epsilon, float* out);
  void (*normalize)(const Normalization&);
  // Computes dgamma, dbeta and (unless it is null) dx, through the batch's statistics.
  void (*normalize_gradient)(const Normalization&);
  // dx (+)= dy * gamma * inverse_deviation: the statistics count as constants.
  void (*scale_gradient)(const Normalization&);
  void (*normalized_values)(const NormalizedTile&);      // writes y
  void (*normalized_statistics)(const TileStatistics&);  // adds a tile
  void (*normalized_sums)(const NormalizedTile&);        // adds to sums
  void (*normalized_gradient)(const NormalizedTile&);    // writes dz
  // For one row: out = softmax(x); returns the cross entropy -log(out[label]), 0 where label < 0. A
  // NaN in x makes both results NaN.
  float (*softmax)(int64_t n, const float* x, float* out, int64_t label);
  // dx (+)= y * (dy - sum(y * dy)), for one row.
  void (*softmax_gradient)(int64_t n, const float* y, const float* dy, float* dx, bool accumulate);
  // gradient = 2 (y - target) / n, for one row; returns the mean of the squares.
  float (*squared_error)(int64_t n, const float* y, const float* target, float* gradient);

  void (*update)(const Update&);
  // Updates the rows and columns of u (as many as g has, in whole vectors) by the gradient that g
  // computes; g.c is ignored.
  void (*gemm_update)(const Gemm& g, const Update& u);
  // Computes the weights' gradient of each feature, into the one row s.g, and updates that row of u
  // with it (u.columns = s.n; u.rows and u.gradients are ignored).
  void (*sparse_update)(const SparseWeightGradient& s, const Update& u);
  // Computes the sums of squares of the parameters and of u. The sums have the same bits for every
  // vector width, if multiply and add are fused.
  void (*measure)(const Measurement& m, double* parameters, double* direction);
  // Returns the sum of squares of the mean gradient after L2 and clip_value, with the same bits for
  // every vector width.
  double (*measure_gradient)(const Measurement& m);
  // state = momentum * state + (1 - momentum) * inverse_rows * batch
  void (*update_state)(int64_t n, float momentum, float inverse_rows, float* state,
                       const float* batch);
};

// All kernels, in the order of the table: MUSTER_KERNELS(X) is X(gemm) X(gemm_pairs) and so on.
// clang-format off
#define MUSTER_KERNELS(X) \
  X(gemm) X(gemm_pairs) X(pack_rows) X(pack_row_pairs) X(normalized_value_pairs) \
  X(normalized_gradient_pairs) X(to_bfloat16) X(sparse_forward) X(sparse_weight_gradient) \
  X(convert_bytes) X(convert_floats) X(count_nonzero) X(list_nonzeros) X(transpose) \
  X(transpose_back) X(sum_parts) X(sum_rows) X(gather_patches) X(scatter_patches) \
  X(winograd_input) X(winograd_output_gradient) X(winograd_kernel) X(winograd_output) \
  X(winograd_input_gradient) X(winograd_kernel_gradient) X(depthwise_row) \
  X(depthwise_weight_gradient_row) X(depthwise_input_gradient_row) X(max_pool) \
  X(max_pool_gradient) X(average_pool) X(average_pool_gradient) X(bias_linear) X(bias_relu) \
  X(bias_relu6) X(bias_sigmoid) X(relu_gradient) X(relu6_gradient) X(sigmoid_gradient) X(copy) \
  X(dropout) X(statistics) X(inverse_deviation) X(normalize) X(normalize_gradient) \
  X(scale_gradient) X(normalized_values) X(normalized_statistics) X(normalized_sums) \
  X(normalized_gradient) X(softmax) X(softmax_gradient) X(squared_error) X(update) \
  X(gemm_update) X(sparse_update) X(measure) X(measure_gradient) X(update_state)
// clang-format on

#define MUSTER_NUMBER(kernel) kernel,
enum class KernelNumber : int64_t { MUSTER_KERNELS(MUSTER_NUMBER) count };
#undef MUSTER_NUMBER
inline constexpr auto kKernels = static_cast<int64_t>(KernelNumber::count);
static_assert(sizeof(Kernels) ==
                  sizeof(Kernels::name) + sizeof(Kernels::lanes) + kKernels * sizeof(Kernels::gemm),
              "MUSTER_KERNELS lacks a kernel of the table");

// The compiled variants. These functions can be called on any CPU, but a CPU can run only the
// kernels of its own instruction sets.
const Kernels& generic_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
const Kernels& avx512_bf16_kernels();

// Returns the kernels for `set`, which this CPU must have. checked_kernels.h returns the kernels
// for host::instruction_set() after a check that they compute correctly.
const Kernels& kernels(host::InstructionSet set);

}  // namespace muster::compute::cpu
