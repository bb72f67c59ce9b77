#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "common/error.h"
#include "common/input_file.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/slices.h"
#include "trainer/compute/optimizer.h"

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNames = 8;  // in an error

// Floats [first, first + count) of a tensor, in a file.
struct Part {
  const InputFile* file = nullptr;
  uint64_t at = 0;  // byte in the file
  uint64_t first = 0;
  uint64_t count = 0;
  std::vector<int64_t> shape;  // logical, whole
};

struct Copy {
  const InputFile* file;
  uint64_t at;
  std::span<float> to;
};

// Knows which file holds which rows of which tensor. It reads no values before every shape has been
// checked.
class Shards {
 public:
  explicit Shards(std::string name) : name_(std::move(name)) {}

  void add(const fs::path& path, const std::vector<Slice>* manifest_slices);
  void load(const compute::ParameterLayout& layout, compute::Range range, std::span<float> values,
            const std::string& prefix) const;
  bool has(const std::string& tensor) const { return parts_.contains(tensor); }
  // Loads those of the layout's tensors that have the same name here; returns the names of the
  // others.
  std::vector<std::string> load_namesakes(const compute::ParameterLayout& layout,
                                          std::span<float> values) const;

 private:
  void require_shapes(const compute::ParameterLayout& layout) const;
  void require_any(const compute::ParameterLayout& layout) const;
  void add_copies(const std::string& name, const compute::ParameterTensor& tensor, uint64_t begin,
                  std::span<float> to, std::vector<Copy>& copies) const;

  std::string name_;  // for errors
  std::vector<std::unique_ptr<InputFile>> files_;
  std::map<std::string, std::vector<Part>> parts_;  // by first
};

Part part_of(const InputFile& file, const SafetensorsHeader::Tensor& tensor, const Slice* slice) {
  Part part{&file, tensor.begin, 0, tensor.count(), tensor.shape};
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
  for (const auto& tensor : header.tensors) {
    const auto slice = std::find_if(slices.begin(), slices.end(), [&](const Slice& s) {
      return s.file == file_name && s.tensor == tensor.name;
    });
    auto& parts = parts_[tensor.name];
    parts.push_back(part_of(file, tensor, slice == slices.end() ? nullptr : &*slice));
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.first < b.first; });
  }
}

void Shards::add_copies(const std::string& name, const compute::ParameterTensor& tensor,
                        uint64_t begin, std::span<float> to, std::vector<Copy>& copies) const {
  const auto found = parts_.find(name);
  if (found == parts_.end()) throw Invalid(fmt::format("{}: tensor {} is missing", name_, name));
  const uint64_t end = begin + to.size();
  uint64_t at = begin;
  for (const Part& part : found->second) {
    if (part.shape != tensor.shape) {
      throw Invalid(fmt::format("{}: tensor {} has the shape [{}], expected [{}]",
                                part.file->path().string(), name, fmt::join(part.shape, ", "),
                                fmt::join(tensor.shape, ", ")));
    }
    if (at == end || part.first > at || part.first + part.count <= at) continue;
    const uint64_t stop = std::min(end, part.first + part.count);
    copies.push_back({part.file, part.at + (at - part.first) * sizeof(float),
                      to.subspan(at - begin, stop - at)});
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
    add_copies(prefix + tensor.name, tensor, begin - tensor.offset,
               values.subspan(begin - range.begin, end - begin), copies);
  }
  std::fill(values.begin(), values.end(), 0.0f);
  for (const Copy& copy : copies) copy.file->read_at(copy.at, std::as_writable_bytes(copy.to));
}

void Shards::require_any(const compute::ParameterLayout& layout) const {
  const auto has = [&](const auto& tensor) { return parts_.contains(tensor.name); };
  if (std::ranges::any_of(layout.tensors(), has)) return;
  std::vector<std::string> names;
  for (const auto& [name, parts] : parts_) names.push_back(name);
  const size_t others = names.size() > kMostNames ? names.size() - kMostNames : 0;
  names.resize(names.size() - others);
  throw Invalid(
      fmt::format("{}: expected a tensor of the model, such as {}, found {}{}", name_,
                  layout.tensors().empty() ? "none" : layout.tensors().front().name,
                  names.empty() ? "none at all" : fmt::format("only {}", fmt::join(names, ", ")),
                  others > 0 ? fmt::format(" and {} more", others) : ""));
}

void Shards::require_shapes(const compute::ParameterLayout& layout) const {
  std::vector<std::string> mismatches;
  for (const auto& tensor : layout.tensors()) {
    const auto found = parts_.find(tensor.name);
    if (found == parts_.end() || found->second.front().shape == tensor.shape) continue;
    mismatches.push_back(fmt::format("{} of [{}] instead of [{}]", tensor.name,
                                     fmt::join(found->second.front().shape, ", "),
                                     fmt::join(tensor.shape, ", ")));
  }
  if (mismatches.empty()) return;
  throw Invalid(
      fmt::format("{}: expected tensors of the model's shapes, found {}; a layer with "
                  "another name begins with its initializer",
                  name_, fmt::join(mismatches, ", ")));
}

void require_finite(const std::string& file, const std::string& tensor,
                    std::span<const float> values) {
  const auto found = std::ranges::find_if(values, [](float v) { return !std::isfinite(v); });
  if (found == values.end()) return;
  throw Invalid(fmt::format("{}: tensor {}: expected finite numbers, found {} as element {}", file,
                            tensor, *found, found - values.begin()));
}

std::vector<std::string> Shards::load_namesakes(const compute::ParameterLayout& layout,
                                                std::span<float> values) const {
  require_any(layout);
  require_shapes(layout);
  std::vector<std::string> others;
  for (const auto& tensor : layout.tensors()) {
    if (!parts_.contains(tensor.name)) {
      others.push_back(tensor.name);
      continue;
    }
    const std::span<float> to = values.subspan(tensor.offset, tensor.count);
    std::vector<Copy> copies;
    add_copies(tensor.name, tensor, 0, to, copies);
    for (const Copy& copy : copies) copy.file->read_at(copy.at, std::as_writable_bytes(copy.to));
    require_finite(name_, tensor.name, to);
  }
  return others;
}

}  // namespace

namespace {

Shards open_all(const Store::Found& found) {
  Shards shards(found.directory.string());
  for (const FileEntry& entry : found.manifest.files) {
    if (entry.name.ends_with(".safetensors")) {
      shards.add(found.directory / entry.name, &found.manifest.slices);
    }
  }
  return shards;
}

}  // namespace

void Store::load(const Found& found, const compute::ParameterLayout& layout, compute::Range range,
                 std::span<float> values, const std::string& prefix) {
  open_all(found).load(layout, range, values, prefix);
}

void Store::load_weights(const Found& found, const compute::ParameterLayout& layout,
                         std::span<float> values) {
  const Shards shards = open_all(found);
  shards.load(layout, {0, layout.size()}, values, "");
  const compute::Range trained = layout.segment(compute::Segment::trainable);
  const std::string prefix = std::string(compute::kAverageSlot) + "/";
  if (trained.size() == 0 || !shards.has(prefix + layout.tensors().front().name)) return;
  shards.load(layout, trained, values.subspan(trained.begin, trained.size()), prefix);
}

namespace {

Shards open_folder(const fs::path& folder) {
  std::error_code ignored;
  if (fs::is_directory(folder / "checkpoints", ignored)) {
    throw Invalid(folder.string() +
                  ": expected a checkpoint's folder or a safetensors file, found a job's "
                  "directory; name its model/model.safetensors, or one of its checkpoints");
  }
  const Store::Found found{folder, Store::read_manifest(folder)};
  Store::verify(found);
  Shards shards(folder.string());
  for (const FileEntry& entry : found.manifest.files) {
    if (entry.name.starts_with("model-")) shards.add(folder / entry.name, &found.manifest.slices);
  }
  return shards;
}

Shards open_weights(const fs::path& from) {
  std::error_code ignored;
  if (fs::is_directory(from, ignored)) return open_folder(from);
  Shards shards(from.string());
  shards.add(from, nullptr);
  return shards;
}

}  // namespace

std::vector<std::string> take_weights(const std::string& field, const fs::path& from,
                                      const compute::ParameterLayout& layout,
                                      std::span<float> parameters) {
  try {
    return open_weights(from).load_namesakes(layout, parameters);
  } catch (const Invalid& error) {
    throw Invalid(field + ": " + error.what(), error.exit_code());
  }
}

}  // namespace muster::checkpoint
