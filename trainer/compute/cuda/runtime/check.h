#pragma once

#include <cuda_runtime.h>

#include <string>

#include "common/error.h"

namespace muster::compute::cuda {

// Whether the error, of a call after the GPU was opened, is one of the hardware.
constexpr bool is_of_hardware(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorHardwareStackError:
    case cudaErrorNoDevice:  // these two are what calls return once the GPU has left the bus
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

// Throws Unavailable if a call of the CUDA runtime has found too little memory, and DeviceError if
// it has failed otherwise; `what` names the call.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const std::string message = std::string(what) + ": expected success of the GPU, found " +
                              cudaGetErrorName(error) + ": " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) throw Unavailable(message);
  throw DeviceError(message, is_of_hardware(error));
}

}  // namespace muster::compute::cuda
