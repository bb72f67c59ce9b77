#include "trainer/compute/cpu/kernels/kernels.h"

#include "trainer/host/instruction_set.h"

namespace muster::compute::cpu {

// The fault that GCC 14.2 made in two kernels at -O3, here in one of them and in every set but the
// generic one: the gradient is written where it must be added.
const Kernels& kernels(host::InstructionSet set) {
  if (set == host::InstructionSet::generic) return generic_kernels();
  static Kernels faulty = avx2_kernels();
  faulty.normalize_gradient = [](const Normalization& asked) {
    Normalization n = asked;
    n.accumulate = false;
    avx2_kernels().normalize_gradient(n);
  };
  return faulty;
}

}  // namespace muster::compute::cpu
