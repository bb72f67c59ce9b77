#include "trainer/host/instruction_set.h"

#include "common/environment.h"
#include "common/error.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace muster::host {

const char* name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::generic:
      return "generic";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
    case InstructionSet::avx512_bf16:
      return "avx512_bf16";
  }
  return "";
}

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets{InstructionSet::generic};
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("fma")) return sets;
  if (__builtin_cpu_supports("avx2")) sets.push_back(InstructionSet::avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    sets.push_back(InstructionSet::avx512);
    if (__builtin_cpu_supports("avx512bf16")) sets.push_back(InstructionSet::avx512_bf16);
  }
#endif
  return sets;
}

InstructionSet instruction_set(const std::string& name) {
  const std::vector<InstructionSet> sets = instruction_sets();
  if (name.empty()) return sets.back();
  for (const InstructionSet set : sets) {
    if (name == name_of(set)) return set;
  }
  throw Invalid("instruction set \"" + name +
                "\": expected avx512_bf16, avx512, avx2 or generic, and one that this CPU has");
}

InstructionSet instruction_set() {
  return instruction_set(environment_variable("MUSTER_INSTRUCTION_SET"));
}

bool fuses() {
  return instruction_set() != InstructionSet::generic;
}

#if defined(__x86_64__)
// Sets bits 15 and 6 of the control register: flush subnormal results, and take subnormal operands
// as zero.
FlushSubnormals::FlushSubnormals() : saved_(_mm_getcsr()) {
  _mm_setcsr(saved_ | 0x8040u);
}
FlushSubnormals::~FlushSubnormals() {
  _mm_setcsr(saved_);
}
#else
FlushSubnormals::FlushSubnormals() = default;
FlushSubnormals::~FlushSubnormals() = default;
#endif

}  // namespace muster::host
