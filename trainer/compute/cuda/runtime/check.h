#pragma once

#include <cuda_runtime.h>

#include <string>

#include "common/error.h"

namespace muster::compute::cuda {

// Whether an error of a call after the GPU was opened is a hardware error.
constexpr bool is_of_hardware(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorHardwareStackError:
    case cudaErrorNoDevice:  // calls return one of these two errors when the GPU has left the bus
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

// Throws Unavailable if a call of the CUDA runtime failed for lack of memory, and DeviceError if it
// failed for another reason; `what` names the call.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const std::string message = std::string(what) + ": expected success of the GPU, found " +
                              cudaGetErrorName(error) + ": " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) throw Unavailable(message);
  throw DeviceError(message, is_of_hardware(error));
}

}  // namespace muster::compute::cuda
