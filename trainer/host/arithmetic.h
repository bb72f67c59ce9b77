#pragma once

#include <cstdint>

namespace muster::host {

enum class InstructionSet;  // instruction_set.h

// Sums and conversions for data that members and parameter servers exchange, over n floats in host
// memory. No function allocates.
struct Arithmetic {
  // out[i] = a[i] + b[i]; out may be a or b.
  void (*add)(int64_t n, const float* a, const float* b, float* out);
  // bfloat16: a float's upper half, rounded to the nearest, ties to even; NaN stays NaN. Two bytes
  // each, little-endian, at any address.
  void (*to_bfloat16)(int64_t n, const float* in, void* out);
  void (*from_bfloat16)(int64_t n, const void* in, float* out);
  // Converts to bfloat16 and back; out may be in.
  void (*round_to_bfloat16)(int64_t n, const float* in, float* out);
};

// Return the functions for instruction_set(), or for `set`, which this CPU must have.
const Arithmetic& arithmetic();
const Arithmetic& arithmetic(InstructionSet set);

// The compiled variants. Any CPU may call these functions, but it can run only the variants of the
// instruction sets that it has.
const Arithmetic& generic_arithmetic();
const Arithmetic& avx2_arithmetic();
const Arithmetic& avx512_arithmetic();

}  // namespace muster::host
