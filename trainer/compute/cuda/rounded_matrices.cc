#include "trainer/compute/cuda/rounded_matrices.h"

#include <algorithm>

namespace muster::compute::cuda {
namespace {

constexpr int64_t kPiece = 4096;        // about this many numbers for a block
constexpr int64_t kRowAlignment = 128;  // numbers

}  // namespace

// Memory is zero at start, so nothing needs to write the rows after the matrix.
int64_t RoundedMatrices::add(int64_t from, int64_t rows, int64_t columns, int64_t padded_rows,
                             int64_t stride) {
  const int64_t place = numbers_;
  const int64_t each = std::max<int64_t>(1, kPiece / stride);
  for (int64_t row = 0; row < rows; row += each)
    pieces_.push_back({from + row * columns, place + row * stride,
                       static_cast<int>(std::min(each, rows - row)), static_cast<int>(columns),
                       static_cast<int>(stride)});
  numbers_ += quotient_up(padded_rows * stride, kRowAlignment) * kRowAlignment;
  return place;
}

void RoundedMatrices::allocate() {
  if (pieces_.empty()) return;
  gpu_pieces_ = std::make_unique<GpuArray<RoundedRows>>(gpu_, static_cast<int64_t>(pieces_.size()));
  memory_ = std::make_unique<GpuArray<uint16_t>>(gpu_, numbers_);
  gpu_.put(gpu_pieces_->data(), pieces_.data(), pieces_.size() * sizeof(RoundedRows)).wait();
}

void RoundedMatrices::write(const float* parameters) const {
  if (pieces_.empty()) return;
  gpu_.launch(RoundMatrices{static_cast<int64_t>(pieces_.size()), gpu_pieces_->data(), parameters,
                            memory_->data()});
}

}  // namespace muster::compute::cuda
