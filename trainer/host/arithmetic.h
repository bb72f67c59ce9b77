#pragma once

#include <cstdint>

namespace muster::host {

enum class InstructionSet;  // instruction_set.h

// Sums and conversions of what members and parameter servers send each other, over n floats in the
// host's memory. No function allocates.
struct Arithmetic {
  // out[i] = a[i] + b[i]; out may be either.
  void (*add)(int64_t n, const float* a, const float* b, float* out);
  // bfloat16: a float's upper half, rounded to the nearest, ties to even; NaN stays NaN. Two bytes
  // each, little-endian, at any address.
  void (*to_bfloat16)(int64_t n, const float* in, void* out);
  void (*from_bfloat16)(int64_t n, const void* in, float* out);
  // There and back; out may be in.
  void (*round_to_bfloat16)(int64_t n, const float* in, float* out);
};

// By the instructions of instruction_set(), or of a set that this CPU has.
const Arithmetic& arithmetic();
const Arithmetic& arithmetic(InstructionSet set);

// The compiled variants, which any CPU can name but not run.
const Arithmetic& generic_arithmetic();
const Arithmetic& avx2_arithmetic();
const Arithmetic& avx512_arithmetic();

}  // namespace muster::host
