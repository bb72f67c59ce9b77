#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "trainer/compute/optimizer.h"

namespace muster::compute {

// Measures the tensors of a range for an optimizer that needs whole tensors: the sums that each
// tensor's ratio is computed from, chunk by chunk, in any order and on any threads. The chunks are
// counted from the beginning of their tensor and added in this order, so neither the threads nor
// the range change the bits. An update has two passes: first all chunks are measured, then any
// piece of the range can be applied with the ratios.
class TensorRatios {
 public:
  static constexpr size_t kChunk = 1024;  // floats

  // Throws Invalid if the range contains only a part of a trainable tensor.
  TensorRatios(const ParameterLayout& layout, Range range);

  Range range() const { return range_; }
  size_t chunks() const { return chunks_.size(); }
  // Measures chunks [some.begin, some.end). The memory of `parameters` and of each slot begins at
  // `origin` in the layout; gradients(chunk) returns the span of the chunk's range. Thread-safe for
  // different chunks. It allocates nothing.
  template <class Gradients, class Slots>
  void measure(Range some, const Optimizer& optimizer, const UpdateArguments& arguments,
               size_t origin, std::span<const float> parameters, const Gradients& gradients,
               const Slots& slots) {
    std::array<std::span<const float>, kMostSlots> pieces;
    for (size_t i = some.begin; i < some.end; ++i) {
      Chunk& chunk = chunks_[i];
      const size_t at = chunk.range.begin - origin, size = chunk.range.size();
      for (size_t slot = 0; slot < slots.size(); ++slot)
        pieces.at(slot) = slots[slot].subspan(at, size);
      chunk.squares =
          optimizer.measure(chunk.tensor, chunk.range, arguments, parameters.subspan(at, size),
                            gradients(chunk.range), std::span(pieces).first(slots.size()));
    }
  }
  // Measures all chunks; the spans are the memory of the range.
  void measure_all(const Optimizer& optimizer, const UpdateArguments& arguments,
                   std::span<const float> parameters, std::span<const float> gradients,
                   std::span<const std::span<float>> slots);
  // Writes the ratios of the range's tensors into the ratios of the layout's tensors. The caller
  // must have measured all chunks with the same optimizer.
  void write(const Optimizer& optimizer, std::span<float> ratios) const;

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
