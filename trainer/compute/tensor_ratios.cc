#include "trainer/compute/tensor_ratios.h"

#include <algorithm>

#include "common/error.h"

namespace muster::compute {

TensorRatios::TensorRatios(const ParameterLayout& layout, Range range) : range_(range) {
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    const ParameterTensor& tensor = layout.tensors()[i];
    const Range whole = tensor.range();
    if (tensor.segment != Segment::trainable) continue;
    if (whole.end <= range.begin || range.end <= whole.begin) continue;
    if (whole.begin < range.begin || range.end < whole.end) {
      throw Invalid("optimizer: expected whole tensors in the range [" +
                    std::to_string(range.begin) + ", " + std::to_string(range.end) +
                    "), found a part of \"" + tensor.name + "\"");
    }
    for (size_t begin = whole.begin; begin < whole.end; begin += kChunk)
      chunks_.push_back({i, {begin, std::min(whole.end, begin + kChunk)}, {}});
  }
}

void TensorRatios::measure(size_t index, const Optimizer& optimizer,
                           const UpdateArguments& arguments, std::span<const float> parameters,
                           std::span<const float> gradients,
                           std::span<const std::span<const float>> slots) {
  Chunk& chunk = chunks_[index];
  chunk.squares =
      optimizer.measure(chunk.tensor, chunk.range, arguments, parameters, gradients, slots);
}

void TensorRatios::measure_all(const Optimizer& optimizer, const UpdateArguments& arguments,
                               std::span<const float> parameters, std::span<const float> gradients,
                               std::span<const std::span<float>> slots) {
  std::vector<std::span<const float>> pieces(slots.size());
  for (size_t i = 0; i < chunks_.size(); ++i) {
    const size_t at = chunks_[i].range.begin - range_.begin, size = chunks_[i].range.size();
    for (size_t slot = 0; slot < slots.size(); ++slot) pieces[slot] = slots[slot].subspan(at, size);
    measure(i, optimizer, arguments, parameters.subspan(at, size), gradients.subspan(at, size),
            pieces);
  }
}

void TensorRatios::write(std::span<float> ratios) const {
  for (size_t i = 0; i < chunks_.size();) {
    const size_t tensor = chunks_[i].tensor;
    Squares all;
    for (; i < chunks_.size() && chunks_[i].tensor == tensor; ++i) all += chunks_[i].squares;
    ratios[tensor] = all.ratio();
  }
}

}  // namespace muster::compute
