#include "trainer/host/arithmetic.h"
#include "trainer/host/kernels/simd.h"

namespace muster::host {

#include "trainer/host/kernels/arithmetic.inc"

const Arithmetic& generic_arithmetic() {
  return kArithmetic;
}

}  // namespace muster::host
