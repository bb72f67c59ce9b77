#pragma once

#include <string>

#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/host/instruction_set.h"

namespace muster::compute::cpu {

// Returns the kernels for host::instruction_set(). The first call for an instruction set checks, in
// a few milliseconds, that its kernels answer all questions (questions.h) as the generic kernels
// do. If they do not, the compiler or the processor is at fault; the function then throws Invalid
// with the exit code kMiscomputes, whose text names the set, the kernel and what to do.
const Kernels& kernels();

// Returns the first error of the kernels of `set` and of the sums and conversions of
// host/arithmetic.h, for example "gemm of 15 columns: expected 2, found 3"; "" if there is no
// error. The other sets are compared with the generic set, so no error can be found in the generic
// set.
std::string why_wrong(const Kernels& kernels, host::InstructionSet set);

}  // namespace muster::compute::cpu
