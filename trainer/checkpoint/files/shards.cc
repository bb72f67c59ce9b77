#include "trainer/checkpoint/files/shards.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/error.h"
#include "trainer/checkpoint/files/slices.h"

namespace muster::checkpoint {

namespace fs = std::filesystem;

Shards::Part Shards::part_of(const InputFile& file, const SafetensorsHeader::Tensor& tensor,
                             const Slice* slice) {
  Part part{&file, tensor, 0, tensor.shape};
  if (slice == nullptr) return part;
  part.shape = slice->shape;
  const int64_t rows = rows_of(part.shape);
  const bool fits = !part.shape.empty() && !tensor.shape.empty() &&
                    tensor.shape == slice_shape(part.shape, tensor.shape[0]) &&
                    slice->first_row <= rows && tensor.shape[0] <= rows - slice->first_row;
  if (!fits) {
    throw Invalid(fmt::format("{}: {} of shape [{}] are not rows from {} of a tensor of shape [{}]",
                              file.path().string(), tensor.name, fmt::join(tensor.shape, ", "),
                              slice->first_row, fmt::join(part.shape, ", ")));
  }
  part.first = static_cast<uint64_t>(slice->first_row * compute::row_floats(part.shape));
  return part;
}

void Shards::add(const fs::path& path, const std::vector<Slice>* manifest_slices) {
  const InputFile& file = *files_.emplace_back(std::make_unique<InputFile>(path));
  const SafetensorsHeader header = SafetensorsHeader::read(file);
  const std::string file_name = path.filename().string();
  const std::vector<Slice> slices =
      manifest_slices != nullptr ? *manifest_slices : slices_of(header, file_name);
  const auto slice_of = slices_by_tensor(slices, file_name);
  for (const auto& tensor : header.tensors) {
    const auto slice = slice_of.find(tensor.name);
    auto& parts = parts_[tensor.name];
    parts.push_back(part_of(file, tensor, slice == slice_of.end() ? nullptr : slice->second));
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.first < b.first; });
  }
}

void Shards::add_copies(const std::string& name, const std::vector<int64_t>& shape, uint64_t begin,
                        std::span<float> to, std::vector<Copy>& copies) const {
  const auto found = parts_.find(name);
  if (found == parts_.end()) throw Invalid(fmt::format("{}: tensor {} is missing", name_, name));
  const uint64_t end = begin + to.size();
  uint64_t at = begin;
  for (const Part& part : found->second) {
    if (part.shape != shape) {
      throw Invalid(fmt::format("{}: tensor {} has the shape [{}], expected [{}]",
                                part.file->path().string(), name, fmt::join(part.shape, ", "),
                                fmt::join(shape, ", ")));
    }
    part.tensor.require_numbers(part.file->path().string());
    const uint64_t part_end = part.first + part.tensor.count();
    if (at == end || part.first > at || part_end <= at) continue;
    const uint64_t stop = std::min(end, part_end);
    copies.push_back({&part, at - part.first, to.subspan(at - begin, stop - at)});
    at = stop;
  }
  if (at < end) {
    throw Invalid(
        fmt::format("{}: element {} of tensor {} is in none of its files", name_, at, name));
  }
}

void Shards::load(const compute::ParameterLayout& layout, compute::Range range,
                  std::span<float> values, const std::string& prefix) const {
  if (values.size() != range.size()) {
    throw Invalid(fmt::format("expected {} floats for the range [{}, {}), found {}", range.size(),
                              range.begin, range.end, values.size()));
  }
  std::vector<Copy> copies;
  for (const auto& tensor : layout.tensors()) {
    const size_t begin = std::max(range.begin, tensor.range().begin);
    const size_t end = std::min(range.end, tensor.range().end);
    if (begin >= end) continue;
    add_copies(prefix + tensor.name, tensor.shape, begin - tensor.offset,
               values.subspan(begin - range.begin, end - begin), copies);
  }
  std::fill(values.begin(), values.end(), 0.0f);
  for (const Copy& copy : copies) copy.make();
}

std::map<std::string, std::vector<int64_t>> Shards::shapes() const {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, parts] : parts_) shapes.emplace(name, parts.front().shape);
  return shapes;
}

void Shards::read(const std::string& name, std::span<float> values) const {
  std::vector<Copy> copies;
  add_copies(name, parts_.at(name).front().shape, 0, values, copies);
  for (const Copy& copy : copies) copy.make();
}

}  // namespace muster::checkpoint
