#include <span>

#include "trainer/compute/cuda/kernels/kernels.h"
#include "trainer/compute/cuda/runtime/block.cuh"
#include "trainer/compute/cuda/runtime/check.h"
#include "trainer/compute/cuda/runtime/launch.h"

namespace muster::compute::cuda {
namespace {

// A kernel may say how many of its blocks a multiprocessor must have room for, which limits the
// registers of a thread; else the compiler decides.
template <class Kernel>
constexpr int room_for() {
  if constexpr (requires { Kernel::kBlocksAtOnce; })
    return Kernel::kBlocksAtOnce;
  else
    return 0;
}

template <class Kernel>
__global__ void __launch_bounds__(kBlockThreads, room_for<Kernel>()) run(const Kernel kernel) {
  GpuBlock block;
  kernel(block);
}

// Returns the entries of the kernels, in the order of the list.
template <class... Kernel>
std::span<const void* const> entries_of(Kernels<Kernel...>) {
  static const void* const entries[] = {reinterpret_cast<const void*>(&run<Kernel>)...};
  return entries;
}

}  // namespace

void load_kernels() {
  for (const void* entry : entries_of(KernelList{})) {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, entry), "cudaFuncGetAttributes");
  }
}

void launch_kernel(size_t kernel, Shape shape, const void* arguments, cudaStream_t stream) {
  void* pointers[] = {const_cast<void*>(arguments)};
  check(
      cudaLaunchKernel(entries_of(KernelList{})[kernel], dim3(static_cast<unsigned>(shape.blocks)),
                       dim3(static_cast<unsigned>(kBlockThreads)), pointers, 0, stream),
      "cudaLaunchKernel");
}

}  // namespace muster::compute::cuda
