#pragma once

#include <memory>

namespace muster::compute::cuda {

class Gpu;  // gpu.h

// Whether this build has what drives GPUs (MUSTER_CUDA).
extern const bool kInThisBuild;

// Returns how many GPUs this process can use: 0 where there is no driver, or where
// CUDA_VISIBLE_DEVICES is empty, or in a build without CUDA. The first call says in the log why
// there is none.
int gpu_count();

// Opens the GPU with this ordinal, which must be below gpu_count(). Throws Unavailable if it cannot
// be used.
std::unique_ptr<Gpu> open_gpu(int ordinal);

}  // namespace muster::compute::cuda
