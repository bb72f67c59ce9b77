#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "common/error.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/slices.h"

namespace muster::checkpoint {
namespace {

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

// Which file holds which rows of which tensor; no values are read before everything fits.
class Shards {
 public:
  explicit Shards(std::string name) : name_(std::move(name)) {}

  void add(const std::filesystem::path& path, const std::vector<Slice>* manifest_slices);
  void load(const compute::ParameterLayout& layout, compute::Range range, std::span<float> values,
            const std::string& prefix) const;

 private:
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
  bool fits = tensor.shape.size() == part.shape.size() && !part.shape.empty() &&
              std::equal(part.shape.begin() + 1, part.shape.end(), tensor.shape.begin() + 1);
  fits = fits && slice->first_row <= part.shape[0] &&
         tensor.shape[0] <= part.shape[0] - slice->first_row;
  if (!fits) {
    throw Invalid(fmt::format("{}: {} of shape [{}] are not rows from {} of a tensor of shape [{}]",
                              file.path().string(), tensor.name, fmt::join(tensor.shape, ", "),
                              slice->first_row, fmt::join(part.shape, ", ")));
  }
  const uint64_t rows = static_cast<uint64_t>(tensor.shape[0]);
  const uint64_t row = rows == 0 ? 0 : part.count / rows;
  part.first = static_cast<uint64_t>(slice->first_row) * row;
  return part;
}

void Shards::add(const std::filesystem::path& path, const std::vector<Slice>* manifest_slices) {
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
    if (begin >= end || !tensor.tied_to.empty()) continue;
    add_copies(prefix + tensor.name, tensor, begin - tensor.offset,
               values.subspan(begin - range.begin, end - begin), copies);
  }
  std::fill(values.begin(), values.end(), 0.0f);
  for (const Copy& copy : copies) copy.file->read_at(copy.at, std::as_writable_bytes(copy.to));
}

}  // namespace

void Store::load(const Found& found, const compute::ParameterLayout& layout, compute::Range range,
                 std::span<float> values, const std::string& prefix) {
  Shards shards(found.directory.string());
  for (const FileEntry& entry : found.manifest.files) {
    if (entry.name.ends_with(".safetensors")) {
      shards.add(found.directory / entry.name, &found.manifest.slices);
    }
  }
  shards.load(layout, range, values, prefix);
}

void load_weights(const std::filesystem::path& path, const compute::ParameterLayout& layout,
                  compute::Range range, std::span<float> values) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    const Store::Found found{path, Store::read_manifest(path)};
    Store::verify(found);
    Store::load(found, layout, range, values, "");
    return;
  }
  Shards shards(path.string());
  shards.add(path, nullptr);
  shards.load(layout, range, values, "");
}

}  // namespace muster::checkpoint
