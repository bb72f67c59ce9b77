#pragma once

#include <memory>
#include <string>

#include "trainer/compute/cuda/gpu_use.h"

namespace muster::compute::cuda {

class Gpu;  // gpu.h

// Whether this build can use GPUs (MUSTER_CUDA).
extern const bool kInThisBuild;

// Returns the number of GPUs that this process can use: 0 without a driver, with an empty
// CUDA_VISIBLE_DEVICES, or in a build without CUDA.
int gpu_count();

// Returns why gpu_count() is 0, for example "this machine has no NVIDIA driver"; "" if there are
// GPUs, or in a build without CUDA.
std::string why_no_gpu();

// Opens the GPU with this ordinal, which must be below gpu_count(). Throws DeviceError or
// Unavailable if it cannot be used.
std::unique_ptr<Gpu> open_gpu(int ordinal);

// Returns a function that looks at the first `count` GPUs; any thread may call it. Throws
// Unavailable if the driver's library (NVML) cannot be used, and DeviceError if a GPU does not
// answer.
LookAtGpus look_at_gpus(int count);

}  // namespace muster::compute::cuda
