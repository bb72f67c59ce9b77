#include <fmt/format.h>

#include <algorithm>

#include "common/digest.h"
#include "common/error.h"
#include "trainer/checkpoint/checkpoint.h"

namespace muster::checkpoint {

std::vector<TensorPiece> pieces_of(const compute::ParameterLayout& layout, compute::Range range,
                                   std::span<const float> values, const std::string& prefix) {
  if (values.size() != range.size()) {
    throw Invalid(fmt::format("expected {} floats for the range [{}, {}), found {}", range.size(),
                              range.begin, range.end, values.size()));
  }
  std::vector<TensorPiece> pieces;
  for (const auto& tensor : layout.tensors()) {
    const size_t begin = std::max(range.begin, tensor.range().begin);
    const size_t end = std::min(range.end, tensor.range().end);
    if (begin >= end) continue;
    const size_t rows = tensor.shape.empty() ? 1 : static_cast<size_t>(tensor.shape[0]);
    const size_t row = tensor.count / rows;
    if ((begin - tensor.offset) % row != 0 || (end - tensor.offset) % row != 0) {
      throw Invalid(fmt::format("range [{}, {}) cuts {} inside a row of {} floats", range.begin,
                                range.end, tensor.name, row));
    }
    pieces.push_back({.name = prefix + tensor.name,
                      .shape = tensor.shape,
                      .first_row = static_cast<int64_t>((begin - tensor.offset) / row),
                      .rows = static_cast<int64_t>((end - begin) / row),
                      .values = values.subspan(begin - range.begin, end - begin)});
  }
  return pieces;
}

std::string weights_digest(const compute::ParameterLayout& layout,
                           std::span<const float> parameters) {
  Sha256 digest;
  for (const TensorPiece& piece : pieces_of(layout, {0, layout.size()}, parameters, "")) {
    digest.update(std::as_bytes(piece.values));
  }
  return digest.finish();
}

}  // namespace muster::checkpoint
