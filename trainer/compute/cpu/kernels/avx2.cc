#include "trainer/compute/cpu/kernels.h"
#include "trainer/host/kernels/simd.h"

namespace muster::compute::cpu {

#include "trainer/compute/cpu/kernels/kernels.inc"

const Kernels& avx2_kernels() {
  static constexpr Kernels kTable = table("avx2");
  return kTable;
}

}  // namespace muster::compute::cpu
