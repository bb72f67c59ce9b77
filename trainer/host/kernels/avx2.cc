#include "trainer/host/arithmetic.h"
#include "trainer/host/kernels/simd.h"

namespace muster::host {

#include "trainer/host/kernels/arithmetic.inc"

const Arithmetic& avx2_arithmetic() {
  return kArithmetic;
}

}  // namespace muster::host
