#include <span>

#include "trainer/compute/cuda/kernels/kernels.h"
#include "trainer/compute/cuda/runtime/block.cuh"
#include "trainer/compute/cuda/runtime/check.h"
#include "trainer/compute/cuda/runtime/launch.h"

namespace muster::compute::cuda {
namespace {

// Kernels for this architecture and later ones wait for the kernel before.
#define MUSTER_WAITING_KERNELS 900

// A kernel may say how many of its blocks a multiprocessor must have room for, which limits the
// registers of a thread; else the compiler decides.
template <class Kernel>
constexpr int room_for() {
  if constexpr (requires { Kernel::kBlocksAtOnce; })
    return Kernel::kBlocksAtOnce;
  else
    return 0;
}

// From Hopper on, the blocks of the next kernel can start while the last blocks of the present
// kernel still work; they wait until the present kernel has ended.
template <class Kernel>
__global__ void __launch_bounds__(kBlockThreads, room_for<Kernel>()) run(const Kernel kernel) {
#if __CUDA_ARCH__ >= MUSTER_WAITING_KERNELS
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
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

bool load_kernels() {
  bool wait = true;
  for (const void* entry : entries_of(KernelList{})) {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, entry), "cudaFuncGetAttributes");
    wait &= attributes.ptxVersion >= MUSTER_WAITING_KERNELS / 10;
  }
  return wait;
}

void launch_kernel(size_t kernel, Shape shape, const void* arguments, cudaStream_t stream,
                   bool early) {
  void* pointers[] = {const_cast<void*>(arguments)};
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  launch.blockDim = dim3(static_cast<unsigned>(kBlockThreads));
  launch.stream = stream;
  launch.attrs = &overlap;
  launch.numAttrs = early ? 1 : 0;
  check(cudaLaunchKernelExC(&launch, entries_of(KernelList{})[kernel], pointers),
        "cudaLaunchKernelExC");
}

}  // namespace muster::compute::cuda
