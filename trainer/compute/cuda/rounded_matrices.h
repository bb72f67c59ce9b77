#pragma once

#include <memory>
#include <vector>

#include "trainer/compute/cuda/gpu.h"

namespace muster::compute::cuda {

// Copies of parameters in bfloat16, made by one kernel at the beginning of a step.
class RoundedMatrices {
 public:
  explicit RoundedMatrices(Gpu& gpu) : gpu_(gpu) {}

  // Adds a matrix [rows, columns] without gaps that begins `from` numbers behind the first
  // parameter. Its copy is [padded_rows, stride]; what it has besides is zero. Returns what at()
  // takes.
  int64_t add(int64_t from, int64_t rows, int64_t columns, int64_t padded_rows, int64_t stride);
  // Called once, when all have been added.
  void allocate();
  // Asks for all copies.
  void write(const float* parameters) const;
  Numbers at(int64_t place) const { return {memory_->data() + place, true}; }

 private:
  Gpu& gpu_;
  std::vector<RoundedRows> pieces_;
  int64_t numbers_ = 0;
  std::unique_ptr<GpuArray<RoundedRows>> gpu_pieces_;
  std::unique_ptr<GpuArray<uint16_t>> memory_;
};

}  // namespace muster::compute::cuda
