#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

#include "trainer/compute/cuda/gpu_link.h"
#include "trainer/compute/linked_devices.h"

namespace muster::compute::cuda {

// NCCL links GPUs of one process and of several. It is a library that is opened at run time, and it
// moves numbers only: what is added up is added by our kernels.

// Throws Unavailable if the library is missing.
void require_nccl();

// Returns what the processes of one link know each other by. This process listens for the others of
// that link until all have come; NCCL has no call that ends it sooner. Throws Unavailable if that
// cannot be done.
std::string make_nccl_id();

// A GPU of this process.
struct NcclMember {
  int ordinal;
  cudaStream_t stream;  // in which its work is done
};

// Links this process's GPUs, `members`, with those of the others. Throws Unavailable if that cannot
// be done, and what devices.watch throws.
std::vector<std::unique_ptr<GpuLink>> link_by_nccl(const std::vector<NcclMember>& members,
                                                   const LinkedDevices& devices);

}  // namespace muster::compute::cuda
