#pragma once

#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/host/arithmetic.h"

namespace muster::compute::cpu {

// All kernels in plain loops over single numbers, with sums of products in float64, written from
// what kernels.h says of them.
Kernels plain_kernels();
// The functions of host/arithmetic.h in plain loops.
const host::Arithmetic& plain_arithmetic();

}  // namespace muster::compute::cpu
