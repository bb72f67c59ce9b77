#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainer/compute/optimizer.h"

namespace muster::compute {

// Measures the tensors of a range for an optimizer that needs whole tensors: the sums that each
// tensor's ratio is computed from, chunk by chunk, in any order and on any threads. The chunks are
// counted from the beginning of their tensor and added in their order, so that neither threads nor
// the range change a bit. An update has two passes: first all chunks are measured, then any piece
// of the range can be applied with the ratios.
class TensorRatios {
 public:
  static constexpr size_t kChunk = 1024;  // floats

  // Throws Invalid where the range holds a part of a trainable tensor.
  TensorRatios(const ParameterLayout& layout, Range range);

  Range range() const { return range_; }
  size_t chunks() const { return chunks_.size(); }
  Range chunk(size_t index) const { return chunks_[index].range; }
  // Calls Optimizer::measure for a chunk. Thread-safe for different chunks.
  void measure(size_t index, const Optimizer& optimizer, const UpdateArguments& arguments,
               std::span<const float> parameters, std::span<const float> gradients,
               std::span<const std::span<const float>> slots);
  // Measures all chunks; the spans are the memory of the range.
  void measure_all(const Optimizer& optimizer, const UpdateArguments& arguments,
                   std::span<const float> parameters, std::span<const float> gradients,
                   std::span<const std::span<float>> slots);
  // Writes the ratios of the range's tensors into the ratios of the layout's tensors. The caller
  // must have measured all chunks.
  void write(std::span<float> ratios) const;

 private:
  struct Chunk {
    size_t tensor;
    Range range;
    Squares squares;
  };

  const Range range_;
  std::vector<Chunk> chunks_;
};

}  // namespace muster::compute
