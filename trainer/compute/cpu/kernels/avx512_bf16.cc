#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/host/kernels/simd.h"

#if defined(__x86_64__) && !defined(__AVX512BF16__)
#error \
    "expected the flags of AVX-512 BF16, which muster_kernels() of cmake/MusterTargets.cmake sets"
#endif

namespace muster::compute::cpu {

#include "trainer/compute/cpu/kernels/kernels.inc"

const Kernels& avx512_bf16_kernels() {
  // All kernels give the same bits as the avx512 kernels, except for subnormal numbers that become
  // bfloat16.
  static constexpr Kernels kTable = table("avx512");
  return kTable;
}

}  // namespace muster::compute::cpu
