#include "trainer/ps/initial_parameters.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/log.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/compute/engine.h"

namespace muster::ps {

namespace fs = std::filesystem;

namespace {

// The weights of a file or checkpoint: which values of which tensor.
struct Source {
  struct Part {
    std::vector<int64_t> shape;  // logical, whole
    size_t first = 0;            // float within the tensor
    std::span<const float> values;
  };
  std::vector<std::unique_ptr<checkpoint::SafetensorsFile>> files;
  std::multimap<std::string, Part> parts;

  void add(const fs::path& path, const std::vector<checkpoint::Slice>& slices);
};

void Source::add(const fs::path& path, const std::vector<checkpoint::Slice>& slices) {
  files.push_back(std::make_unique<checkpoint::SafetensorsFile>(path));
  for (const auto& tensor : files.back()->tensors()) {
    Part part{tensor.shape, 0, tensor.values};
    for (const auto& slice : slices) {
      if (slice.file != path.filename() || slice.tensor != tensor.name) continue;
      part.shape = slice.shape;
      size_t row = 1;
      for (size_t i = 1; i < slice.shape.size(); ++i) row *= static_cast<size_t>(slice.shape[i]);
      part.first = static_cast<size_t>(slice.first_row) * row;
    }
    parts.emplace(tensor.name, part);
  }
}

Source open_source(const fs::path& from) {
  Source source;
  if (!fs::is_directory(from)) {
    source.add(from, {});
    return source;
  }
  const checkpoint::Store::Found found{from, checkpoint::Store::read_manifest(from)};
  checkpoint::Store::verify(found);
  for (const auto& file : found.manifest.files)
    if (file.name.starts_with("model-")) source.add(from / file.name, found.manifest.slices);
  return source;
}

bool copy_tensor(const Source& source, const compute::ParameterTensor& tensor,
                 std::span<float> parameters) {
  const auto [first, last] = source.parts.equal_range(tensor.name);
  size_t copied = 0;
  for (auto it = first; it != last; ++it) {
    const Source::Part& part = it->second;
    if (part.shape != tensor.shape || part.first + part.values.size() > tensor.count) return false;
    std::copy(part.values.begin(), part.values.end(),
              parameters.begin() + static_cast<ptrdiff_t>(tensor.offset + part.first));
    copied += part.values.size();
  }
  return first != last && copied == tensor.count;
}

}  // namespace

std::vector<std::string> copy_matching(const fs::path& from, const compute::ParameterLayout& layout,
                                       std::span<float> parameters) {
  const Source source = open_source(from);
  std::vector<std::string> unmatched;
  size_t matched = 0;
  for (const auto& tensor : layout.tensors()) {
    if (!tensor.tied_to.empty()) continue;
    if (copy_tensor(source, tensor, parameters))
      ++matched;
    else
      unmatched.push_back(tensor.name);
  }
  if (matched == 0) {
    const std::string first = layout.tensors().empty() ? "" : layout.tensors()[0].name;
    throw Invalid("training.initializeFrom: " + from.string() +
                  ": expected a tensor of the model's name and shape such as " + first +
                  ", found none among its " + std::to_string(source.parts.size()));
  }
  std::string names;
  for (const auto& name : unmatched) names += (names.empty() ? "" : ", ") + name;
  if (!unmatched.empty())
    log::warning("initializeFrom: not in the source, or of another shape: " + names,
                 {{"source", from.string()}});
  return unmatched;
}

void fill_initial_parameters(const spec::TrainingSpec& spec, const compute::ParameterLayout& layout,
                             std::span<float> parameters) {
  compute::initialize_parameters(layout, spec.seed, parameters);
  if (!spec.initialize_from.empty()) copy_matching(spec.initialize_from, layout, parameters);
}

}  // namespace muster::ps
