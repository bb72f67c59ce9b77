#pragma once

namespace muster::compute {

// The number format of a computation. bfloat16 concerns the convolutions whose outputs are batch
// normalized and read by convolutions alone: their outputs, and the gradients of these, are stored
// as bfloat16. On a GPU, and on a CPU with products of bfloat16 (AVX-512 BF16), the factors of most
// of these convolutions' products are rounded too; on other CPUs the computations with the stored
// numbers are in float32. So the bits differ between such devices. All sums and all parameters are
// float32.
enum class Precision { float32, bfloat16 };

inline const char* name_of(Precision precision) {
  return precision == Precision::bfloat16 ? "bfloat16" : "float32";
}

}  // namespace muster::compute
