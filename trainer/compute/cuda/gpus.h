#pragma once

#include <memory>
#include <string>

#include "trainer/compute/cuda/gpu_use.h"

namespace muster::compute::cuda {

class Gpu;  // gpu.h

// Whether this build has what drives GPUs (MUSTER_CUDA).
extern const bool kInThisBuild;

// Returns how many GPUs this process can use: 0 where there is no driver, or where
// CUDA_VISIBLE_DEVICES is empty, or in a build without CUDA.
int gpu_count();

// Returns why gpu_count() is 0: "this machine has no NVIDIA driver"; "" where there are GPUs, or in
// a build without CUDA.
std::string why_no_gpu();

// Opens the GPU with this ordinal, which must be below gpu_count(). Throws DeviceError or
// Unavailable if it cannot be used.
std::unique_ptr<Gpu> open_gpu(int ordinal);

// Returns what looks at the first `count` GPUs; may be called by any thread. Throws Unavailable if
// the driver's library for that cannot be used, and DeviceError if a GPU does not answer.
LookAtGpus look_at_gpus(int count);

}  // namespace muster::compute::cuda
