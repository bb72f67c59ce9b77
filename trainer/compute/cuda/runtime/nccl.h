#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/compute/cuda/gpu_link.h"

namespace muster::compute::cuda {

// A GPU of this process.
struct NcclMember {
  int ordinal;
  cudaStream_t stream;  // in which its work is done
  // A link sets this function. The GPU calls it again and again while somebody waits for its work.
  // It throws Unavailable if the work will not be done because another member has failed.
  std::shared_ptr<std::function<void()>> watch;
};

// Links GPUs by NCCL, a library that is opened at run time. It moves numbers only: what is added up
// is added by our kernels. Returns none, and the reason in `why`, if that cannot be done.
std::vector<std::unique_ptr<GpuLink>> link_by_nccl(const std::vector<NcclMember>& members,
                                                   std::string& why);

}  // namespace muster::compute::cuda
