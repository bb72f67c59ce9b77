#include "trainer/compute/cpu/check/questions.h"

#include <algorithm>
#include <array>

namespace muster::compute::cpu {
namespace {

// The products of `depth` terms; `a` is transposed if `turned`.
Gemm product(Sheet& s, int64_t depth, bool turned, float* (Sheet::*factor)(int64_t)) {
  Gemm g;
  g.m = s.rows();
  g.n = s.columns();
  g.k = depth;
  g.a = (s.*factor)(g.m * depth);
  g.a_row = turned ? 1 : depth;
  g.a_column = turned ? g.m : 1;
  g.ldb = s.ld();
  g.b = (s.*factor)(depth * g.ldb);
  g.ldc = s.ld();
  g.c = s.matrix();
  g.accumulate = s.accumulate();
  return g;
}

// Depths for the three cases: panels of b are used in place, copied, or split into several blocks.
constexpr std::array<int64_t, 3> kDepths{3, 50, 180};

void ask_gemm(Sheet& s) {
  for (const int64_t depth : kDepths)
    s.kernels().gemm(product(s, depth, depth == 50, &Sheet::floats));
}
void ask_gemm_pairs(Sheet& s) {
  for (const int64_t depth : kDepths)
    s.kernels().gemm_pairs(product(s, depth, depth == 50, &Sheet::pairs));
}

void ask_pack_rows(Sheet& s) {
  const int64_t ldo = (s.columns() + 1) / 2 + 1;
  s.kernels().pack_rows(s.rows(), s.columns(), s.thirds(s.rows() * s.ld()), s.ld(),
                        s.pairs(s.rows() * ldo), ldo);
}
void ask_pack_row_pairs(Sheet& s) {
  s.kernels().pack_row_pairs(s.rows(), s.columns(), s.thirds(s.rows() * s.ld()), s.ld(),
                             s.pairs((s.rows() + 1) / 2 * s.ld()), s.ld());
}

NormalizedTile tile(Sheet& s, bool half) {
  const int64_t count = s.rows() * s.columns();
  const auto numbers = [&]() -> void* {
    return half ? static_cast<void*>(s.halves(count)) : s.floats(count);
  };
  NormalizedTile t;
  t.places = s.rows();
  t.channels = s.columns();
  t.half = half;
  t.z = numbers();
  t.scale = s.row();
  t.shift = s.row();
  t.low = -0.5f;
  t.high = 1.5f;
  t.dy = numbers();
  t.mean = s.row();
  t.slope = s.row();
  t.offset = s.row();
  return t;
}
void ask_pairs_of_tile(Sheet& s, void (*kernel)(const NormalizedTile&)) {
  NormalizedTile t = tile(s, true);
  t.rows = s.pairs(t.places * ((t.channels + 1) / 2));
  t.row_pairs = s.pairs((t.places + 1) / 2 * t.channels);
  kernel(t);
}
void ask_normalized_value_pairs(Sheet& s) {
  ask_pairs_of_tile(s, s.kernels().normalized_value_pairs);
}
void ask_normalized_gradient_pairs(Sheet& s) {
  ask_pairs_of_tile(s, s.kernels().normalized_gradient_pairs);
}

void ask_to_bfloat16(Sheet& s) {
  s.kernels().to_bfloat16(s.columns(), s.thirds(s.columns()), s.halves(s.columns()));
}

// The features of `x` that are not zero, listed in plain code.
constexpr int64_t kFeatures = 40;
struct Listed {
  int64_t blocks = (kFeatures + kSlot - 1) / kSlot, words = 0;
  float* x = nullptr;
  NonzeroList list;
  uint32_t* masks = nullptr;
};
Listed listed(Sheet& s) {
  const auto as_signed = [](uint32_t* words) { return reinterpret_cast<int32_t*>(words); };
  Listed l;
  l.words = (s.rows() + 31) / 32;
  l.x = s.mostly_zeros(s.rows() * kFeatures);
  l.list = {as_signed(s.words(l.blocks * s.rows())), as_signed(s.words(s.rows() * kFeatures)),
            s.floats(s.rows() * kFeatures)};
  l.masks = s.words(kFeatures * l.words);
  int64_t count = 0;
  for (int64_t block = 0; block < l.blocks; ++block) {
    for (int64_t r = 0; r < s.rows(); ++r) {
      const int64_t before = count;
      for (int64_t f = block * kSlot; f < std::min(kFeatures, (block + 1) * kSlot); ++f) {
        const float x = l.x[r * kFeatures + f];
        if (x == 0) continue;
        l.list.indices[count] = static_cast<int32_t>(f);
        l.list.values[count++] = x;
        l.masks[f * l.words + r / 32] |= 1u << (r % 32);
      }
      l.list.counts[block * s.rows() + r] = static_cast<int32_t>(count - before);
    }
  }
  return l;
}

void ask_sparse_forward(Sheet& s) {
  const Listed l = listed(s);
  for (const int64_t blocks : {int64_t{0}, l.blocks}) {
    SparseForward f;
    f.rows = s.rows();
    f.n = s.columns();
    f.blocks = blocks;
    f.list = l.list;
    f.ldw = s.ld();
    f.w = s.floats(kFeatures * f.ldw);
    f.ldy = s.ld();
    f.y = s.matrix();
    s.kernels().sparse_forward(f);
  }
}

SparseWeightGradient sparse_gradient(Sheet& s) {
  const Listed l = listed(s);
  SparseWeightGradient g;
  g.begin = 3;
  g.end = kFeatures;
  g.n = s.columns();
  g.words = l.words;
  g.masks = l.masks;
  g.x = l.x;
  g.ldx = kFeatures;
  g.dy = s.matrix();
  g.ldy = s.ld();
  g.ldg = s.ld();
  g.g = s.floats((g.end - g.begin) * g.ldg);
  return g;
}
void ask_sparse_weight_gradient(Sheet& s) {
  s.kernels().sparse_weight_gradient(sparse_gradient(s));
}

void ask_convert_bytes(Sheet& s) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(s.halves(s.columns()));
  s.kernels().convert_bytes(s.columns(), bytes, 0.25f, -1.5f, s.row());
}
void ask_convert_floats(Sheet& s) {
  s.kernels().convert_floats(s.columns(), s.row(), 0.25f, -1.5f, s.row());
}
void ask_count_nonzero(Sheet& s) {
  const int64_t n = s.columns();
  s.tell(static_cast<double>(s.kernels().count_nonzero(n, s.mostly_zeros(n))));
}

// Kernels store whole vectors, so that the numbers behind the last entry may differ.
void ask_list_nonzeros(Sheet& s) {
  ListNonzeros l;
  l.rows = s.rows();
  l.begin = 0;
  l.end = s.columns();
  l.ldx = s.ld();
  l.x = s.mostly_zeros(l.rows * l.ldx);
  const int64_t blocks = (l.end + kSlot - 1) / kSlot, most = l.rows * l.end;
  uint32_t* counts = s.words(blocks * l.rows);
  uint32_t* indices = s.words(most + kSlack);
  float* values = s.floats(most + kSlack);
  l.list = {reinterpret_cast<int32_t*>(counts), reinterpret_cast<int32_t*>(indices), values};
  l.words = (l.rows + 31) / 32;
  l.masks = s.words(l.end * l.words);
  const int64_t count = s.kernels().list_nonzeros(l);
  s.tell(static_cast<double>(count));
  std::fill(indices + count, indices + most + kSlack, 0u);
  std::fill(values + count, values + most + kSlack, 0.0f);
}

void ask_transpose(Sheet& s) {
  const int64_t ldo = s.rows() + 1;
  s.kernels().transpose(s.rows(), s.columns(), s.matrix(), s.ld(), s.floats(s.columns() * ldo),
                        ldo);
}
void ask_transpose_back(Sheet& s) {
  const int64_t ldi = s.rows() + 1;
  s.kernels().transpose_back(s.rows(), s.columns(), s.floats(s.columns() * ldi), ldi, s.matrix(),
                             s.ld(), s.accumulate());
}
void ask_sum_parts(Sheet& s) {
  const int64_t stride = s.rows() * s.ld() + 1;
  s.kernels().sum_parts(s.rows(), s.columns(), 3, stride, s.floats(3 * stride), s.ld(), s.matrix(),
                        s.ld());
}
void ask_sum_rows(Sheet& s) {
  s.kernels().sum_rows(s.rows(), s.columns(), s.matrix(), s.ld(), s.row());
}

// A window of `size` x `size` that moves by `stride` over an image of 5 x 6 with a border.
Sliding sliding(const Sheet& s, int64_t size, int64_t stride) {
  Sliding w;
  w.height = 5;
  w.width = 6;
  w.channels = s.columns();
  w.window_height = w.window_width = size;
  w.down = w.right = stride;
  w.top = w.left = size / 2;
  w.out_height = (w.height + 2 * w.top - size) / stride + 1;
  w.out_width = (w.width + 2 * w.left - size) / stride + 1;
  return w;
}
int64_t floats_of(const Sliding& w) {
  return w.height * w.width * w.channels;
}

void ask_patches(Sheet& s, void (*kernel)(const Patches&)) {
  Patches p;
  p.sliding = sliding(s, 3, 2);
  p.begin = 1;
  p.end = places_of(p.sliding) - 1;
  p.image = s.floats(floats_of(p.sliding));
  p.ld = 9 * s.columns() + 1;
  p.matrix = s.floats((p.end - p.begin) * p.ld);
  kernel(p);
}
void ask_gather_patches(Sheet& s) {
  ask_patches(s, s.kernels().gather_patches);
}
void ask_scatter_patches(Sheet& s) {
  ask_patches(s, s.kernels().scatter_patches);
}

WinogradTiles tiles(Sheet& s, int64_t count) {
  WinogradTiles w;
  w.tiles = count;
  w.channels = s.columns();
  w.place = s.ld();
  w.row = (count * kWinogradTile + 2) * w.place;
  w.image = s.floats(kWinogradSquare * w.row);
  w.plane = s.ld();
  w.tile = kWinogradPlanes * w.plane;
  w.spectrum = s.floats(count * w.tile);
  return w;
}
void ask_winograd_input(Sheet& s) {
  s.kernels().winograd_input(tiles(s, 2));
}
void ask_winograd_output_gradient(Sheet& s) {
  s.kernels().winograd_output_gradient(tiles(s, 2));
}
void ask_winograd_kernel(Sheet& s) {
  s.kernels().winograd_kernel(tiles(s, 1));
}
void ask_winograd_output(Sheet& s) {
  s.kernels().winograd_output(tiles(s, 2), kWinogradTile, 2 * kWinogradTile);
  s.kernels().winograd_output(tiles(s, 2), kWinogradTile - 1, 2 * kWinogradTile - 1);
  s.kernels().winograd_output(tiles(s, 2), kWinogradTile, kWinogradTile + 2);
}
void ask_winograd_input_gradient(Sheet& s) {
  s.kernels().winograd_input_gradient(tiles(s, 2));
}
void ask_winograd_kernel_gradient(Sheet& s) {
  s.kernels().winograd_kernel_gradient(tiles(s, 1));
}

// {size, stride}: windows of 3 x 3, which have their own code, with two strides, and another
// window.
constexpr std::array<std::array<int64_t, 2>, 3> kWindows{{{3, 1}, {3, 2}, {2, 1}}};

void ask_depthwise(Sheet& s, void (*kernel)(const DepthwiseRow&)) {
  for (const auto& [size, stride] : kWindows) {
    DepthwiseRow d;
    d.sliding = sliding(s, size, stride);
    std::array<const float*, 3> rows{};
    for (int64_t r = 0; r < size; ++r) rows[static_cast<size_t>(r)] = s.floats(6 * s.columns());
    d.x = rows.data();
    d.w = s.floats(size * size * s.columns());
    d.y = s.floats(d.sliding.out_width * s.columns());
    d.dy = s.floats(d.sliding.out_width * s.columns());
    d.dw = s.floats(size * size * s.columns());
    kernel(d);
  }
}
void ask_depthwise_row(Sheet& s) {
  ask_depthwise(s, s.kernels().depthwise_row);
}
void ask_depthwise_weight_gradient_row(Sheet& s) {
  ask_depthwise(s, s.kernels().depthwise_weight_gradient_row);
}
void ask_depthwise_input_gradient_row(Sheet& s) {
  for (const bool whole : {true, false}) {
    for (const auto& [size, stride] : kWindows) {
      DepthwiseGradientRow d;
      d.sliding = sliding(s, size, stride);
      std::array<const float*, 3> rows{};
      for (int64_t r = whole ? 0 : 1; r < size; ++r)
        rows[static_cast<size_t>(r)] = s.floats(d.sliding.out_width * s.columns());
      d.dy = rows.data();
      d.w = s.floats(size * size * s.columns());
      d.dx = s.floats(d.sliding.width * s.columns());
      d.accumulate = s.accumulate();
      s.kernels().depthwise_input_gradient_row(d);
    }
  }
}

Pool pooled(Sheet& s) {
  Pool p;
  p.sliding = sliding(s, 3, 2);
  p.begin = 1;
  p.end = p.sliding.out_height;
  const int64_t out = places_of(p.sliding) * s.columns();
  p.x = s.floats(floats_of(p.sliding));
  p.y = s.floats(out);
  p.dy = s.floats(out);
  p.dx = s.floats(floats_of(p.sliding));
  return p;
}
void ask_max_pool(Sheet& s) {
  s.kernels().max_pool(pooled(s));
}
void ask_max_pool_gradient(Sheet& s) {
  const Pool p = pooled(s);
  s.kernels().max_pool(p);
  s.kernels().max_pool_gradient(p);
}
void ask_average_pool(Sheet& s) {
  s.kernels().average_pool(pooled(s));
}
void ask_average_pool_gradient(Sheet& s) {
  s.kernels().average_pool_gradient(pooled(s));
}

void ask_bias(Sheet& s, decltype(Kernels::bias_relu) kernel) {
  kernel(s.rows(), s.columns(), s.matrix(), s.ld(), s.row());
  kernel(s.rows(), s.columns(), s.matrix(), s.ld(), nullptr);
}
void ask_bias_linear(Sheet& s) {
  ask_bias(s, s.kernels().bias_linear);
}
void ask_bias_relu(Sheet& s) {
  ask_bias(s, s.kernels().bias_relu);
}
void ask_bias_relu6(Sheet& s) {
  ask_bias(s, s.kernels().bias_relu6);
}
void ask_bias_sigmoid(Sheet& s) {
  ask_bias(s, s.kernels().bias_sigmoid);
}
void ask_slope(Sheet& s, decltype(Kernels::relu_gradient) kernel) {
  kernel(s.rows(), s.columns(), s.matrix(), s.ld(), s.matrix(), s.matrix(), s.accumulate());
}
void ask_relu_gradient(Sheet& s) {
  ask_slope(s, s.kernels().relu_gradient);
}
void ask_relu6_gradient(Sheet& s) {
  ask_slope(s, s.kernels().relu6_gradient);
}
void ask_sigmoid_gradient(Sheet& s) {
  ask_slope(s, s.kernels().sigmoid_gradient);
}

void ask_copy(Sheet& s) {
  s.kernels().copy(s.rows(), s.columns(), s.matrix(), s.ld(), s.matrix(), s.ld(), s.accumulate());
}
void ask_dropout(Sheet& s) {
  s.kernels().dropout(s.columns(), s.row(), s.row(), 0x0123456789ABCDEFu, 5, 1u << 23, 2,
                      s.accumulate());
}

// Rows as samples of two positions each, the positions of all samples side by side.
Normalization normalization(Sheet& s) {
  Normalization n;
  n.samples = s.rows();
  n.outer = 2;
  n.columns = s.columns();
  n.sample_stride = s.ld();
  n.outer_stride = s.rows() * s.ld();
  const int64_t size = n.outer * n.outer_stride;
  n.x = s.floats(size);
  n.y = s.floats(size);
  n.dy = s.floats(size);
  n.dx = s.floats(size);
  n.accumulate = s.accumulate();
  n.gamma = s.row();
  n.beta = s.row();
  n.mean = s.row();
  n.inverse_deviation = s.positive(n.columns);
  n.dgamma = s.row();
  n.dbeta = s.row();
  return n;
}
void ask_statistics(Sheet& s) {
  s.kernels().statistics(normalization(s));
}
void ask_inverse_deviation(Sheet& s) {
  const int64_t n = s.columns();
  s.kernels().inverse_deviation(n, s.positive(n), 0.125f, s.row());
}
void ask_normalize(Sheet& s) {
  s.kernels().normalize(normalization(s));
}
void ask_normalize_gradient(Sheet& s) {
  Normalization n = normalization(s);
  s.kernels().normalize_gradient(n);
  n = normalization(s);
  n.dx = nullptr;
  s.kernels().normalize_gradient(n);
}
void ask_scale_gradient(Sheet& s) {
  s.kernels().scale_gradient(normalization(s));
}

void ask_normalized_values(Sheet& s) {
  for (const bool half : {false, true}) {
    NormalizedTile t = tile(s, half);
    t.y = s.floats(t.places * t.channels);
    s.kernels().normalized_values(t);
  }
}
void ask_normalized_statistics(Sheet& s) {
  for (const char* form : {"float", "half", "rounded"}) {
    TileStatistics t;
    t.places = s.rows();
    t.channels = s.columns();
    t.half = form[0] != 'f';
    const int64_t count = t.places * t.channels;
    t.z = t.half ? static_cast<void*>(s.halves(count)) : s.floats(count);
    if (form[0] == 'r') t.unrounded = s.floats(count);
    t.before = 4;
    t.mean = s.row();
    t.spread = s.positive(t.channels);
    s.kernels().normalized_statistics(t);
  }
}
void ask_normalized_sums(Sheet& s) {
  for (const char* form : {"float", "half", "rounded"}) {
    NormalizedTile t = tile(s, form[0] != 'f');
    if (form[0] == 'r') t.unrounded = s.floats(t.places * t.channels);
    t.sums = s.floats(2 * t.channels);
    s.kernels().normalized_sums(t);
  }
}
void ask_normalized_gradient(Sheet& s) {
  for (const bool half : {false, true}) {
    NormalizedTile t = tile(s, half);
    t.dz = s.floats(t.places * t.channels);
    s.kernels().normalized_gradient(t);
  }
}

void ask_softmax(Sheet& s) {
  s.tell(s.kernels().softmax(s.columns(), s.row(), s.row(), s.columns() - 1));
  s.tell(s.kernels().softmax(s.columns(), s.row(), s.row(), -1));
}
void ask_softmax_gradient(Sheet& s) {
  s.kernels().softmax_gradient(s.columns(), s.row(), s.row(), s.row(), s.accumulate());
}
void ask_squared_error(Sheet& s) {
  s.tell(s.kernels().squared_error(s.columns(), s.row(), s.row(), s.row()));
}

// A rule with round numbers; `full`: with all optional parts of a rule.
UpdateRule rule_of(Rule rule, bool full) {
  UpdateRule r;
  r.rule = rule;
  r.gradient_scale = 0.5f;
  r.rate = 0.25f;
  r.momentum = 0.75f;
  r.beta1 = 0.75f;
  r.beta2 = 0.5f;
  r.epsilon = 0.125f;
  if (!full) return r;
  r.shaped = true;
  r.l2 = 0.125f;
  r.most = 0.5f;
  r.clip_factor = 0.5f;
  r.averaged = true;
  r.average_taken = 0.25f;
  r.decay = 0.125f;
  return r;
}

// Calls function(update) for each rule, on `rows` x `columns` of parameters.
template <typename Function>
void for_rules(Sheet& s, int64_t rows, int64_t columns, Function function) {
  const int64_t stride = columns + s.ld() - s.columns();
  for (const Rule rule : {Rule::sgd, Rule::momentum, Rule::nesterov, Rule::adam, Rule::rms_prop}) {
    for (const bool full : {false, true}) {
      Update u;
      u.rule = rule_of(rule, full);
      u.rows = rows;
      u.columns = columns;
      u.stride = stride;
      u.parameters = s.floats(rows * stride);
      u.first = s.positive(rows * stride);
      u.second = s.positive(rows * stride);
      u.average = s.floats(rows * stride);
      u.gradient_stride = stride;
      u.gradients = s.floats(rows * stride);
      function(u);
    }
  }
}
void ask_update(Sheet& s) {
  for_rules(s, s.rows(), s.columns(), [&](const Update& u) { s.kernels().update(u); });
}
void ask_gemm_update(Sheet& s) {
  const int64_t columns = (s.columns() + s.lanes() - 1) / s.lanes() * s.lanes();
  for_rules(s, s.rows(), columns, [&](const Update& u) {
    Gemm g = product(s, 3, false, &Sheet::floats);
    g.n = columns;
    g.ldb = columns;
    g.b = s.floats(g.k * columns);
    s.kernels().gemm_update(g, u);
  });
}
void ask_sparse_update(Sheet& s) {
  for_rules(s, kFeatures, s.columns(), [&](const Update& u) {
    SparseWeightGradient g = sparse_gradient(s);
    g.g = s.row();
    s.kernels().sparse_update(g, u);
  });
}

Measurement measured(Sheet& s, int64_t count) {
  Measurement m;
  m.rule = rule_of(Rule::adam, true);
  m.count = count;
  m.parameters = s.floats(count);
  m.first = s.floats(count);
  m.second = s.positive(count);
  m.gradients = s.floats(count);
  return m;
}
void ask_measure(Sheet& s) {
  double parameters = 0, direction = 0;
  s.kernels().measure(measured(s, s.rows() * s.columns()), &parameters, &direction);
  s.tell(parameters);
  s.tell(direction);
}
void ask_measure_gradient(Sheet& s) {
  s.tell(s.kernels().measure_gradient(measured(s, s.rows() * s.columns())));
}
void ask_update_state(Sheet& s) {
  s.kernels().update_state(s.columns(), 0.75f, 0.125f, s.row(), s.row());
}

void ask_sum(Sheet& s) {
  s.arithmetic().add(s.columns(), s.row(), s.row(), s.row());
}
void ask_rounding(Sheet& s) {
  s.arithmetic().to_bfloat16(s.columns(), s.thirds(s.columns()), s.halves(s.columns()));
}
void ask_widening(Sheet& s) {
  s.arithmetic().from_bfloat16(s.columns(), s.halves(s.columns()), s.row());
}
void ask_rounding_there_and_back(Sheet& s) {
  s.arithmetic().round_to_bfloat16(s.columns(), s.thirds(s.columns()), s.row());
}

}  // namespace

std::span<const Question> questions() {
  constexpr auto kAlways = [](const Kernels&) { return true; };
#define MUSTER_QUESTION(kernel) \
  Question{#kernel, ask_##kernel, [](const Kernels& k) { return k.kernel != nullptr; }},
  static constexpr std::array kQuestions{
      MUSTER_KERNELS(MUSTER_QUESTION)  //
      Question{"Arithmetic::add", ask_sum, kAlways},
      Question{"Arithmetic::to_bfloat16", ask_rounding, kAlways},
      Question{"Arithmetic::from_bfloat16", ask_widening, kAlways},
      Question{"Arithmetic::round_to_bfloat16", ask_rounding_there_and_back, kAlways}};
#undef MUSTER_QUESTION
  return kQuestions;
}

}  // namespace muster::compute::cpu
