#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "trainer/compute/cuda/grid.h"

namespace muster::compute::cuda {

// Asks a stream for the kernel with this place in KernelList. `arguments` is its struct.
// Loads all kernels onto the current GPU.
void load_kernels();

void launch_kernel(size_t kernel, Shape shape, const void* arguments, cudaStream_t stream);

}  // namespace muster::compute::cuda
