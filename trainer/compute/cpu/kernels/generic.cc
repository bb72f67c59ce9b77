#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/host/kernels/simd.h"

namespace muster::compute::cpu {

#include "trainer/compute/cpu/kernels/kernels.inc"

const Kernels& generic_kernels() {
  static constexpr Kernels kTable = table("generic");
  return kTable;
}

}  // namespace muster::compute::cpu
