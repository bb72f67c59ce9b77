#pragma once

#include <string>

#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/host/instruction_set.h"

namespace muster::compute::cpu {

// Returns the kernels for host::instruction_set(). The first time that a process asks for those of
// a set, they must give the answers of the plain ones to all questions (questions.h), in a few
// milliseconds. Throws Invalid with the exit code kMiscomputes, which names the set, the kernel and
// what to do, if they do not: the compiler or the processor is at fault.
const Kernels& kernels();

// Returns what is wrong with kernels of `set` and the sums and conversions of host/arithmetic.h,
// beginning with the name of the kernel: "gemm of 15 columns: expected 2, found 3"; "" if nothing
// is. The generic set is what others are compared with, so nothing can be said against it here.
std::string why_wrong(const Kernels& kernels, host::InstructionSet set);

}  // namespace muster::compute::cpu
