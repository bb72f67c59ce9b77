#include "trainer/compute/parameter_layout.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/digest.h"
#include "common/error.h"

namespace muster::compute {
namespace {

size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

size_t checked_count(const ParameterTensor& tensor) {
  size_t count = 1;
  for (int64_t axis : tensor.shape) {
    if (axis <= 0) {
      throw Invalid("parameter \"" + tensor.name +
                    "\": expected every axis to be at least 1, found " + std::to_string(axis));
    }
    count *= static_cast<size_t>(axis);
  }
  return count;
}

void check_names(const std::vector<ParameterTensor>& tensors) {
  std::set<std::string> seen;
  for (const ParameterTensor& tensor : tensors) {
    if (!seen.insert(tensor.name).second) {
      throw Invalid("two parameters are named \"" + tensor.name + "\"; expected unique names");
    }
  }
}

// Returns the border nearest to `at`: the beginning of a row of the tensor that contains `at`, of
// this tensor, or of the next tensor.
size_t border_at(const std::vector<ParameterTensor>& tensors, ParameterLayout::Borders borders,
                 size_t at) {
  const bool whole = borders == ParameterLayout::Borders::tensors;
  for (const ParameterTensor& tensor : tensors) {
    const size_t next = tensor.offset + round_up(tensor.count, ParameterLayout::kAlignment);
    if (at >= (whole ? next : tensor.offset + tensor.count)) continue;
    if (at <= tensor.offset) return tensor.offset;
    if (whole) return at - tensor.offset < next - at ? tensor.offset : next;
    const auto row = static_cast<size_t>(row_floats(tensor.shape));
    return tensor.offset + (at - tensor.offset + row / 2) / row * row;
  }
  return at;
}

}  // namespace

ParameterLayout::ParameterLayout(std::vector<ParameterTensor> tensors)
    : tensors_(std::move(tensors)) {
  check_names(tensors_);
  std::reverse(tensors_.begin(), tensors_.end());
  std::stable_sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) {
    return static_cast<int>(a.segment) < static_cast<int>(b.segment);
  });
  size_t at = 0;
  int segment = 0;
  for (ParameterTensor& tensor : tensors_) {
    tensor.count = checked_count(tensor);
    while (segment < static_cast<int>(tensor.segment)) {
      segments_[segment++].end = at;
      segments_[segment].begin = at;
    }
    tensor.offset = at;
    at += round_up(tensor.count, kAlignment);
  }
  for (; segment < 3; ++segment) {
    segments_[segment].end = at;
    if (segment < 2) segments_[segment + 1].begin = at;
  }
  size_ = at;
}

const ParameterTensor& ParameterLayout::find(const std::string& name) const {
  for (const ParameterTensor& tensor : tensors_) {
    if (tensor.name == name) return tensor;
  }
  throw Invalid("the model has no parameter \"" + name + "\"");
}

Range ParameterLayout::segment(Segment segment) const {
  return segments_[static_cast<int>(segment)];
}

size_t ParameterLayout::parameter_count() const {
  size_t count = 0;
  for (const ParameterTensor& tensor : tensors_) count += tensor.count;
  return count;
}

std::vector<Range> ParameterLayout::partition(int shards, Borders borders) const {
  if (shards < 1) throw Invalid("expected at least one shard, found " + std::to_string(shards));
  std::vector<Range> ranges(static_cast<size_t>(shards));
  size_t begin = 0;
  for (size_t shard = 0; shard < ranges.size(); ++shard) {
    size_t end = size_;
    if (shard + 1 < ranges.size()) {
      end = std::max(begin, border_at(tensors_, borders, size_ * (shard + 1) / ranges.size()));
    }
    ranges[shard] = {begin, end};
    begin = end;
  }
  return ranges;
}

std::string ParameterLayout::fingerprint() const {
  std::string text = "muster-layout-1\n";
  for (const ParameterTensor& tensor : tensors_) {
    text += tensor.name + '\0' + std::to_string(static_cast<int>(tensor.segment)) + ' ' +
            std::to_string(tensor.offset);
    for (int64_t axis : tensor.shape) text += ' ' + std::to_string(axis);
    text += '\n';
  }
  return sha256(text);
}

}  // namespace muster::compute
