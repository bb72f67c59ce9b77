#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/text/pattern.h"
#include "trainer/compute/parameter_layout.h"
#include "trainer/spec/training_spec.h"

namespace muster::checkpoint {

// The result of `initializeFrom`: which tensors of the model begin with values of the source.
struct TakenWeights {
  std::vector<std::string> taken;
  std::vector<std::string> missing;     // tensors that the source does not have
  std::vector<std::string> mismatched;  // "head/kernel of [3] instead of [4]"
  std::vector<std::string> left_out;    // tensors left out by include and exclude
  std::vector<std::string> unused;      // names in the source that match no tensor

  bool is_complete() const { return missing.empty() && mismatched.empty() && left_out.empty(); }
  // Returns a sentence with this result for `from`, with at most `most` names of each list.
  std::string text(const std::string& from, size_t most) const;
};

// Whether `from` names something that take_weights() could read.
bool is_there(const std::filesystem::path& from);

// Implements `initializeFrom`: replaces the initializers' weights by those of `from`, which is a
// published checkpoint's folder (verified first), a safetensors file (for example the export) or
// its folder with the name model.safetensors, or a checkpoint of TensorFlow. `options` say which
// tensor of the source is used for which tensor of the model; if their renames lead to no tensor of
// the model, those of `published` (compute::published_names) follow. Shapes count as equal if they
// differ only in axes of 1. `parameters` are layout.size() floats; tensors that are not taken keep
// their values. Throws Invalid, with a message that begins with `field`, if a tensor has another
// shape (unless options.skip_mismatched) or a value that is not finite, if two tensors of the
// source are for the same tensor of the model, if no tensor is taken, and if `from` cannot be used
// at all. After an error `parameters` are undefined.
TakenWeights take_weights(const std::string& field, const std::filesystem::path& from,
                          const compute::ParameterLayout& layout, std::span<float> parameters,
                          const spec::InitializeOptions& options = {},
                          const std::vector<Rename>& published = {});

}  // namespace muster::checkpoint
