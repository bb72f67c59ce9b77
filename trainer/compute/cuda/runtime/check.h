#pragma once

#include <cuda_runtime.h>

#include <string>

#include "common/error.h"

namespace muster::compute::cuda {

// Throws Unavailable if a call of the CUDA runtime has failed; `what` names it.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw Unavailable(std::string(what) + ": expected success of the GPU, found " +
                    cudaGetErrorName(error) + ": " + cudaGetErrorString(error));
}

}  // namespace muster::compute::cuda
