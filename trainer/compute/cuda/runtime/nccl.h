#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

#include "trainer/compute/cuda/gpu_link.h"
#include "trainer/compute/linked_devices.h"

namespace muster::compute::cuda {

// NCCL links GPUs of one process and of several. It is a library that is opened at run time. It
// only moves numbers; our kernels add them up.

// Throws Unavailable if the library is missing.
void require_nccl();

// Returns the id by which the processes of a link find each other. This process listens for the
// link's other processes until all have connected; NCCL has no call that stops the listening.
// Throws Unavailable if NCCL cannot make an id.
std::string make_nccl_id();

// A GPU of this process.
struct NcclMember {
  int ordinal;
  cudaStream_t stream;  // the stream of the GPU's work
};

// Links this process's GPUs, `members`, with the GPUs of the other processes. Throws Unavailable if
// this is not possible, and any error that devices.watch throws.
std::vector<std::unique_ptr<GpuLink>> link_by_nccl(const std::vector<NcclMember>& members,
                                                   const LinkedDevices& devices);

}  // namespace muster::compute::cuda
