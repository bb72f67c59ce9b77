// Used in builds without CUDA.
#include <stdexcept>

#include "trainer/compute/cuda/gpu.h"
#include "trainer/compute/cuda/gpus.h"

namespace muster::compute::cuda {

const bool kInThisBuild = false;

int gpu_count() {
  return 0;
}

std::string why_no_gpu() {
  return "";
}

std::unique_ptr<Gpu> open_gpu(int) {
  throw std::logic_error("expected an ordinal below gpu_count(), which is 0");
}

LookAtGpus look_at_gpus(int) {
  throw std::logic_error("expected at most gpu_count() GPUs, which is 0");
}

}  // namespace muster::compute::cuda
