#pragma once

#include "trainer/compute/cuda/gpu.h"

namespace muster::compute::cuda {

// Floats in a GPU's memory; all zeros at start. The GPU must outlive the object, and must have
// finished its reads and writes of this memory before another thread copies.
class CudaMemory : public Memory {
 public:
  CudaMemory(Gpu& gpu, size_t floats) : gpu_(gpu), size_(floats), floats_(gpu, int64_t(floats)) {}

  size_t size() const override { return size_; }
  Completion read(Range range, PlacedFloats to) const override {
    return gpu_.fetch(to.address(), data() + range.begin, range.size() * sizeof(float));
  }
  Completion write(Range range, ConstPlacedFloats from) override {
    return gpu_.put(data() + range.begin, from.address(), range.size() * sizeof(float));
  }
  PlacedFloats floats() override { return {compute::Place::gpu, data(), size_}; }

  float* data() const { return floats_.data(); }
  const Gpu& gpu() const { return gpu_; }

 private:
  Gpu& gpu_;
  const size_t size_;
  const GpuArray<float> floats_;
};

}  // namespace muster::compute::cuda
