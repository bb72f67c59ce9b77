#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "trainer/compute/cuda/grid.h"

namespace muster::compute::cuda {

// Loads all kernels onto the current GPU. Returns whether they can be launched early.
bool load_kernels();

// Asks a stream for the kernel with this place in KernelList. `arguments` is its struct. With
// `early` it is launched while the stream's previous kernel still runs, and waits for the end of
// that kernel.
void launch_kernel(size_t kernel, Shape shape, const void* arguments, cudaStream_t stream,
                   bool early);

}  // namespace muster::compute::cuda
