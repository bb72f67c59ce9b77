#pragma once

namespace muster::compute {

// The number format of a computation. With bfloat16, of the convolutions whose outputs are batch
// normalized and read by convolutions alone, outputs and their gradients are rounded to bfloat16
// where they are kept. On a GPU, and on a CPU with products of bfloat16 (AVX-512 BF16), the factors
// of most of these convolutions' products are rounded too; elsewhere what is computed from the kept
// numbers is float32. So the bits differ between these. All sums and all parameters are float32.
enum class Precision { float32, bfloat16 };

inline const char* name_of(Precision precision) {
  return precision == Precision::bfloat16 ? "bfloat16" : "float32";
}

}  // namespace muster::compute
