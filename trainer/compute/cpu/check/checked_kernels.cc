#include "trainer/compute/cpu/check/checked_kernels.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <vector>

#include "common/error.h"
#include "common/exit_code.h"
#include "trainer/compute/cpu/check/questions.h"

namespace muster::compute::cpu {
namespace {

using host::InstructionSet;

// The kernels of pairs of bfloat16 in plain code, which the generic set lacks.

float half_at(const float* pairs, int64_t i) {
  uint16_t half = 0;
  std::memcpy(&half, reinterpret_cast<const char*>(pairs) + 2 * i, sizeof half);
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

void set_half(float* pairs, int64_t i, float number) {
  host::generic_arithmetic().to_bfloat16(1, &number, reinterpret_cast<char*>(pairs) + 2 * i);
}

void gemm_pairs(const Gemm& g) {
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      float& c = g.c[i * g.ldc + j];
      float sum = g.accumulate ? c : 0;
      for (int64_t p = 0; p < g.k; ++p) {
        const float* a = g.a + i * g.a_row + p * g.a_column;
        const float* b = g.b + p * g.ldb + j;
        sum += half_at(a, 0) * half_at(b, 0) + half_at(a, 1) * half_at(b, 1);
      }
      c = sum;
    }
  }
}

void pack_rows(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out,
               int64_t ldo) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < (columns + 1) / 2 * 2; ++c)
      set_half(out + r * ldo, c, c < columns ? in[r * ldi + c] : 0);
  }
}

void pack_row_pairs(int64_t rows, int64_t columns, const float* in, int64_t ldi, float* out,
                    int64_t ldo) {
  for (int64_t r = 0; r < (rows + 1) / 2 * 2; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      set_half(out + r / 2 * ldo + c, r % 2, r < rows ? in[r * ldi + c] : 0);
  }
}

// Packs the floats that `kernel` writes to the tile's member `to`.
void pack_floats(NormalizedTile t, void (*kernel)(const NormalizedTile&),
                 float* NormalizedTile::*to) {
  std::vector<float> floats(static_cast<size_t>(t.places * t.channels));
  t.*to = floats.data();
  kernel(t);
  if (t.rows != nullptr)
    pack_rows(t.places, t.channels, floats.data(), t.channels, t.rows, (t.channels + 1) / 2);
  if (t.row_pairs != nullptr)
    pack_row_pairs(t.places, t.channels, floats.data(), t.channels, t.row_pairs, t.channels);
}

void normalized_value_pairs(const NormalizedTile& tile) {
  pack_floats(tile, generic_kernels().normalized_values, &NormalizedTile::y);
}

void normalized_gradient_pairs(const NormalizedTile& tile) {
  pack_floats(tile, generic_kernels().normalized_gradient, &NormalizedTile::dz);
}

Kernels plain_kernels() {
  Kernels plain = generic_kernels();
  plain.gemm_pairs = gemm_pairs;
  plain.pack_rows = pack_rows;
  plain.pack_row_pairs = pack_row_pairs;
  plain.normalized_value_pairs = normalized_value_pairs;
  plain.normalized_gradient_pairs = normalized_gradient_pairs;
  return plain;
}

void require_right(InstructionSet set) {
  const std::string wrong = why_wrong(kernels(set), set);
  if (wrong.empty()) return;
  InstructionSet other = InstructionSet::generic;
  for (const InstructionSet lower : host::instruction_sets()) {
    if (lower < set && why_wrong(kernels(lower), lower).empty()) other = lower;
  }
  throw Invalid(
      fmt::format(
          "this program computes wrong here, with the kernels for {}: {}. The compiler "
          "that built it or this processor is at fault. Start it with "
          "MUSTER_INSTRUCTION_SET={}, which is slower and right (`muster run` hands it on, a pod's "
          "template may not set it), or build it with another compiler; where the same program "
          "starts on other machines with {}, repair this "
          "machine",
          host::name_of(set), wrong, host::name_of(other), host::name_of(set)),
      kMiscomputes);
}

}  // namespace

std::string why_wrong(const Kernels& kernels, InstructionSet set) {
  const Kernels plain = plain_kernels();
  const int64_t lanes = kernels.lanes;
  // Both numbers of columns consist of whole vectors and a part of a vector; the first has an even
  // number of whole vectors, the second an odd number.
  for (const Extent& extent : {Extent{5, 3 * lanes - 1, 3, true}, Extent{5, lanes + 1, 3, false}}) {
    for (const Question& question : questions()) {
      if (!question.is_in(kernels)) continue;
      Sheet expected({plain, host::generic_arithmetic(), lanes, extent});
      Sheet found({kernels, host::arithmetic(set), lanes, extent});
      question.ask(expected);
      question.ask(found);
      const std::string difference = Sheet::difference(expected, found);
      if (!difference.empty())
        return fmt::format("{} of {} columns{}: {}", question.kernel, extent.columns,
                           extent.accumulate ? ", added to what is there" : "", difference);
    }
  }
  return "";
}

const Kernels& kernels() {
  static std::array<std::once_flag, 4> checked;
  const InstructionSet set = host::instruction_set();
  std::call_once(checked.at(static_cast<size_t>(set)), [set] { require_right(set); });
  return kernels(set);
}

}  // namespace muster::compute::cpu
