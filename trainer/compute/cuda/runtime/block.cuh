#pragma once

#include "trainer/compute/cuda/grid.h"

namespace muster::compute::cuda {

// A block of the GPU; see grid.h. Each of its threads has one of these objects.
class GpuBlock {
 public:
  __device__ int64_t index() const { return blockIdx.x; }
  __device__ int64_t count() const { return gridDim.x; }
  template <int64_t Floats>
  __device__ float* shared() {
    __shared__ __align__(16) float memory[Floats];
    return memory;
  }

  // Each thread has one of these objects, so it finds its own state at every index.
  template <class T>
  struct Locals {
    __device__ T& operator[](int64_t) { return value; }
    T value;
  };
  template <class T>
  __device__ Locals<T> locals() {
    return {};
  }

  template <class Function>
  __device__ void each(Function function) {
    function(static_cast<int64_t>(threadIdx.x));
    __syncthreads();
  }

  // Adds one half to the other half again and again, in the same order as the simulated block.
  // Within a warp no memory is needed.
  template <class Function>
  __device__ float sum(Function function) {
    return fold(function(static_cast<int64_t>(threadIdx.x)),
                [](float a, float b) { return a + b; });
  }
  template <class Function>
  __device__ float most(Function function) {
    return fold(function(static_cast<int64_t>(threadIdx.x)),
                [](float a, float b) { return b > a ? b : a; });
  }

 private:
  template <class Join>
  __device__ float fold(float value, Join join) {
    __shared__ float parts[kBlockThreads];
    const int thread = static_cast<int>(threadIdx.x);
    parts[thread] = value;
    __syncthreads();
    for (int half = kBlockThreads / 2; half >= 32; half /= 2) {
      if (thread < half) parts[thread] = join(parts[thread], parts[thread + half]);
      __syncthreads();
    }
    if (thread < 32) {
      float sum = parts[thread];
      for (int half = 16; half > 0; half /= 2)
        sum = join(sum, __shfl_down_sync(0xFFFFFFFFu, sum, half));
      if (thread == 0) parts[0] = sum;
    }
    __syncthreads();
    const float result = parts[0];
    __syncthreads();
    return result;
  }
};

}  // namespace muster::compute::cuda
