#pragma once

#include <memory>
#include <vector>

#include "trainer/compute/cuda/gpu.h"

namespace muster::compute::cuda {

// Copies of parameters in bfloat16, made by one kernel at the beginning of a step.
class RoundedMatrices {
 public:
  explicit RoundedMatrices(Gpu& gpu) : gpu_(gpu) {}

  // Adds a matrix [rows, columns] without gaps that begins `from` numbers after the first
  // parameter. The copy is [padded_rows, stride], with zeros outside the matrix. Returns the
  // argument for at().
  int64_t add(int64_t from, int64_t rows, int64_t columns, int64_t padded_rows, int64_t stride);
  // Must be called once, after all matrices have been added.
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
