#include <cstdlib>

#include "common/error.h"
#include "trainer/compute/cpu/kernels.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace muster::compute::cpu {
namespace {

#if defined(__x86_64__)
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("fma");
}
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

}  // namespace

const Kernels& select_kernels(const std::string& name) {
  if (name == "generic") return generic_kernels();
#if defined(__x86_64__)
  if (name == "avx512" && has_avx512()) return avx512_kernels();
  if (name == "avx2" && has_avx2()) return avx2_kernels();
  if (name.empty()) {
    return has_avx512() ? avx512_kernels() : has_avx2() ? avx2_kernels() : generic_kernels();
  }
#else
  if (name.empty()) return generic_kernels();
#endif
  throw Invalid("instruction set \"" + name +
                "\": expected avx512, avx2 or generic, and one that this CPU has");
}

const Kernels& select_kernels() {
  const char* name = std::getenv("MUSTER_INSTRUCTION_SET");
  return select_kernels(name == nullptr ? "" : name);
}

#if defined(__x86_64__)
// Bits 15 and 6 of the control register: flush results, take operands as zero.
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

}  // namespace muster::compute::cpu
