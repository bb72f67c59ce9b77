#include "trainer/checkpoint/start/take_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "common/error.h"
#include "common/program/log.h"
#include "common/text/listed.h"
#include "trainer/checkpoint/files/shards.h"
#include "trainer/checkpoint/start/other_formats.h"
#include "trainer/checkpoint/store/store.h"
#include "trainer/checkpoint/tensorflow/tensorflow_checkpoint.h"

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNames = 8;  // most names in an error
constexpr std::string_view kMovingAverage = "/ExponentialMovingAverage";

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Axes of 1 do not change the order of values.
std::vector<int64_t> without_ones(std::vector<int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

void require_finite(const std::string& file, const std::string& tensor,
                    std::span<const float> values) {
  const auto found = std::ranges::find_if(values, [](float v) { return !std::isfinite(v); });
  if (found == values.end()) return;
  throw Invalid(fmt::format("{}: tensor {}: expected finite numbers, found {} as element {}", file,
                            tensor, *found, found - values.begin()));
}

// The square root of a negative variance is not a number, and makes the outputs no numbers either.
void warn_of_variances(const std::string& file, const std::string& tensor,
                       const compute::ParameterTensor& target, std::span<const float> values) {
  if (!target.name.ends_with("/moving_variance")) return;
  const auto found = std::ranges::find_if(values, [](float v) { return v < 0; });
  if (found == values.end()) return;
  log::warning(fmt::format(
      "{}: tensor {}: expected variances, found {} as element {}: until training has replaced it, "
      "evaluations and predictions may not be numbers",
      file, tensor, *found, found - values.begin()));
}

// Throws what `error` says of `file`; if the file has another format, what it is and how to get
// weights of it.
[[noreturn]] void fail_format(const fs::path& file, const Invalid& error) {
  const std::string expected =
      "expected a safetensors file, or a TensorFlow checkpoint by its name without .index or .data";
  const std::string other = other_format(file);
  throw Invalid(other.empty() ? fmt::format("{} ({})", error.what(), expected)
                              : fmt::format("{}: {}, found {}", file.string(), expected, other),
                error.exit_code());
}

std::unique_ptr<WeightSource> open_file(const fs::path& file, const std::string& name) {
  auto shards = std::make_unique<Shards>(name);
  try {
    shards->add(file, nullptr);
  } catch (const Invalid& error) {
    fail_format(file, error);
  }
  return shards;
}

std::unique_ptr<WeightSource> open_tensorflow(const fs::path& prefix) {
  try {
    return std::make_unique<TensorflowCheckpoint>(prefix);
  } catch (const Invalid& error) {
    fail_format(prefix.string() + ".index", error);
  }
}

std::unique_ptr<WeightSource> open_folder(const fs::path& folder) {
  std::error_code ignored;
  if (fs::is_directory(folder / "checkpoints", ignored)) {
    throw Invalid(folder.string() +
                  ": expected a checkpoint's folder or a safetensors file, found a job's "
                  "directory; name its model/model.safetensors, or one of its checkpoints");
  }
  if (!fs::exists(folder / "manifest.json", ignored)) {
    const fs::path index = folder / "model.safetensors.index.json";
    const std::string parts = fs::exists(index, ignored) ? other_format(index) : "";
    throw Invalid(folder.string() +
                  ": expected the folder of a checkpoint (with manifest.json, or a TensorFlow "
                  "checkpoint's .index) or of an export (with model.safetensors), or a safetensors "
                  "file, found " +
                  (parts.empty() ? "a folder with none of them" : parts));
  }
  const Store::Found found = Store::read_whole(folder);
  auto shards = std::make_unique<Shards>(folder.string());
  for (const FileEntry& entry : found.manifest.files) {
    if (entry.name.starts_with("model-")) shards->add(folder / entry.name, &found.manifest.slices);
  }
  return shards;
}

std::unique_ptr<WeightSource> open_weights(const fs::path& from) {
  if (const auto prefix = TensorflowCheckpoint::prefix_of(from)) return open_tensorflow(*prefix);
  std::error_code ignored;
  // An export of Muster or of another program.
  const fs::path exported = from / "model.safetensors";
  const bool is_export =
      fs::is_regular_file(exported, ignored) && !fs::exists(from / "manifest.json", ignored);
  if (is_export) return open_file(exported, from.string());
  return fs::is_directory(from, ignored) ? open_folder(from) : open_file(from, from.string());
}

// Matches the tensors of a source with those of a model.
class Matching {
 public:
  Matching(std::string from, const compute::ParameterLayout& layout,
           const spec::InitializeOptions& options, const std::vector<Rename>& published)
      : from_(std::move(from)),
        layout_(layout),
        options_(options),
        renames_(options.rename),
        published_(published),
        include_(options.include),
        exclude_(options.exclude) {
    for (const auto& tensor : layout.tensors()) tensors_.emplace(tensor.name, &tensor);
  }

  TakenWeights take(const WeightSource& source, std::span<float> parameters) {
    const auto shapes = source.shapes();
    for (const auto& [name, shape] : shapes) match(name);
    require_any(shapes);
    std::map<std::string, std::string> used;  // by the source's name
    for (const auto& tensor : layout_.tensors()) choose(tensor, shapes, used);
    for (const auto& [name, shape] : shapes)
      if (!used.contains(name)) result_.unused.push_back(name);
    require_shapes();
    require_taken();
    for (const auto& [name, target] : used) {
      const compute::ParameterTensor& tensor = *tensors_.at(target);
      const std::span<float> to = parameters.subspan(tensor.offset, tensor.count);
      source.read(name, to);
      require_finite(from_, name, to);
      warn_of_variances(from_, name, tensor, to);
    }
    return std::move(result_);
  }

 private:
  struct Candidate {
    std::string name;  // in the source
    bool average = false;
  };

  // Returns the model's tensor for a name of the source.
  std::string target_of(std::string name) const {
    name = renames_.apply(std::move(name));
    return tensors_.contains(name) ? name : published_.apply(std::move(name));
  }

  bool wants(const std::string& target) const {
    return (include_.empty() || include_.match(target)) && !exclude_.match(target);
  }

  void match(const std::string& name) {
    const bool average = name.ends_with(kMovingAverage);
    if (average && !options_.moving_averages) return;
    const std::string target =
        target_of(average ? name.substr(0, name.size() - kMovingAverage.size()) : name);
    if (!tensors_.contains(target)) return;
    auto& candidate = candidates_[target];
    if (!wants(target)) return;
    if (candidate && candidate->average == average)
      throw Invalid(fmt::format("{}: expected one tensor for {}, found {} and {}", from_, target,
                                candidate->name, name));
    if (!candidate || average) candidate = Candidate{name, average};
  }

  void choose(const compute::ParameterTensor& tensor,
              const std::map<std::string, std::vector<int64_t>>& shapes,
              std::map<std::string, std::string>& used) {
    if (!wants(tensor.name)) {
      result_.left_out.push_back(tensor.name);
      return;
    }
    const auto candidate = candidates_.find(tensor.name);
    if (candidate == candidates_.end()) {
      result_.missing.push_back(tensor.name);
      return;
    }
    const std::string& name = candidate->second->name;
    const std::vector<int64_t>& shape = shapes.at(name);
    if (without_ones(shape) != without_ones(tensor.shape)) {
      result_.mismatched.push_back(fmt::format("{} of {} instead of {}", tensor.name,
                                               shape_text(shape), shape_text(tensor.shape)));
      return;
    }
    result_.taken.push_back(tensor.name);
    used.emplace(name, tensor.name);
  }

  void require_any(const std::map<std::string, std::vector<int64_t>>& shapes) const {
    if (!candidates_.empty()) return;
    std::vector<std::string> names;
    for (const auto& [name, shape] : shapes) names.push_back(name);
    throw Invalid(fmt::format("{}: expected a tensor of the model, such as {}, found {}", from_,
                              layout_.tensors().empty() ? "none" : layout_.tensors().front().name,
                              names.empty() ? "none at all" : "only " + listed(names, kMostNames)));
  }

  void require_shapes() const {
    if (result_.mismatched.empty() || options_.skip_mismatched) return;
    throw Invalid(
        fmt::format("{}: expected tensors of the model's shapes, found {}; with "
                    "initializeOptions.skipMismatched "
                    "these begin with their initializers, as does a layer with another name",
                    from_, fmt::join(result_.mismatched, ", ")));
  }

  void require_taken() const {
    if (result_.taken.empty())
      throw Invalid(fmt::format("{}: expected at least one tensor to be taken, found that {}",
                                from_, result_.text(from_, kMostNames)));
  }

  const std::string from_;  // for errors
  const compute::ParameterLayout& layout_;
  const spec::InitializeOptions& options_;
  const Renames renames_;
  const Renames published_;
  const Patterns include_;
  const Patterns exclude_;
  std::map<std::string, const compute::ParameterTensor*> tensors_;
  // By the model's name; nothing for a tensor that is not wanted.
  std::map<std::string, std::optional<Candidate>> candidates_;
  TakenWeights result_;
};

}  // namespace

std::string TakenWeights::text(const std::string& from, size_t most) const {
  const size_t all = taken.size() + missing.size() + mismatched.size() + left_out.size();
  std::string text =
      fmt::format("{} of the model's {} tensors begin with those of {}", taken.size(), all, from);
  const auto add = [&](const char* why, const std::vector<std::string>& names) {
    if (!names.empty()) text += fmt::format("; {} {}: {}", names.size(), why, listed(names, most));
  };
  add("begin with their initializers, for it does not have them", missing);
  add("begin with their initializers, for it has them in other shapes", mismatched);
  add("begin with their initializers, as include and exclude say", left_out);
  add("of its tensors are not used", unused);
  return text;
}

bool is_there(const fs::path& from) {
  std::error_code ignored;
  return fs::exists(from, ignored) || TensorflowCheckpoint::prefix_of(from);
}

TakenWeights take_weights(const std::string& field, const fs::path& from,
                          const compute::ParameterLayout& layout, std::span<float> parameters,
                          const spec::InitializeOptions& options,
                          const std::vector<Rename>& published) {
  try {
    const auto source = open_weights(from);
    return Matching(from.string(), layout, options, published).take(*source, parameters);
  } catch (const Invalid& error) {
    throw Invalid(field + ": " + error.what(), error.exit_code());
  }
}

}  // namespace muster::checkpoint
