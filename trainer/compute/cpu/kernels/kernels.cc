#include "trainer/compute/cpu/kernels/kernels.h"

#include "trainer/host/instruction_set.h"

namespace muster::compute::cpu {

using host::InstructionSet;

const Kernels& kernels(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512_bf16:
      return avx512_bf16_kernels();
    case InstructionSet::avx512:
      return avx512_kernels();
    case InstructionSet::avx2:
      return avx2_kernels();
    case InstructionSet::generic:
      break;
  }
  return generic_kernels();
}

}  // namespace muster::compute::cpu
