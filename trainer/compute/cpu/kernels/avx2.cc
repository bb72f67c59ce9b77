#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/host/kernels/simd.h"

#if defined(__x86_64__) && !defined(__AVX2__)
#error "expected the flags of AVX2, which muster_kernels() of cmake/MusterTargets.cmake sets"
#endif

namespace muster::compute::cpu {

#include "trainer/compute/cpu/kernels/kernels.inc"

const Kernels& avx2_kernels() {
  static constexpr Kernels kTable = table("avx2");
  return kTable;
}

}  // namespace muster::compute::cpu
