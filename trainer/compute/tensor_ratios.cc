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

void TensorRatios::measure_all(const Optimizer& optimizer, const UpdateArguments& arguments,
                               std::span<const float> parameters, std::span<const float> gradients,
                               std::span<const std::span<float>> slots) {
  const auto of_chunk = [&](Range chunk) {
    return gradients.subspan(chunk.begin - range_.begin, chunk.size());
  };
  measure({0, chunks()}, optimizer, arguments, range_.begin, parameters, of_chunk, slots);
}

void TensorRatios::write(const Optimizer& optimizer, std::span<float> ratios) const {
  for (size_t i = 0; i < chunks_.size();) {
    const size_t tensor = chunks_[i].tensor;
    Squares all;
    for (; i < chunks_.size() && chunks_[i].tensor == tensor; ++i) all += chunks_[i].squares;
    ratios[tensor] = optimizer.ratio(all);
  }
}

}  // namespace muster::compute
