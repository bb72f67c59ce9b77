#include "trainer/host/arithmetic.h"

#include "trainer/host/instruction_set.h"

namespace muster::host {

const Arithmetic& arithmetic(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512:
    case InstructionSet::avx512_bf16:
      return avx512_arithmetic();
    case InstructionSet::avx2:
      return avx2_arithmetic();
    case InstructionSet::generic:
      break;
  }
  return generic_arithmetic();
}

const Arithmetic& arithmetic() {
  return arithmetic(instruction_set());
}

}  // namespace muster::host
