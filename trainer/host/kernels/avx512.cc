#include "trainer/host/arithmetic.h"
#include "trainer/host/kernels/simd.h"

#if defined(__x86_64__) && !defined(__AVX512F__)
#error "expected the flags of AVX-512, which muster_kernels() of cmake/MusterTargets.cmake sets"
#endif

namespace muster::host {

#include "trainer/host/kernels/arithmetic.inc"

const Arithmetic& avx512_arithmetic() {
  return kArithmetic;
}

}  // namespace muster::host
