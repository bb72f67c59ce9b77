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
  std::vector<std::string> missing;     // the source does not have them
  std::vector<std::string> mismatched;  // "head/kernel of [3] instead of [4]"
  std::vector<std::string> left_out;    // by include and exclude
  std::vector<std::string> unused;      // names of the source that went to no tensor

  bool is_complete() const { return missing.empty() && mismatched.empty() && left_out.empty(); }
  // Returns a sentence that says all of this of `from`, with at most `most` names of each list.
  std::string text(const std::string& from, size_t most) const;
};

// Whether `from` names anything that take_weights() could read.
bool is_there(const std::filesystem::path& from);

// Implements `initializeFrom`: replaces the initializers' weights by those of `from`, which is a
// published checkpoint's folder (verified first), a safetensors file such as the export or the
// folder that has it as model.safetensors, or a checkpoint of TensorFlow. `options` say which
// tensors go where; where their renames lead to no tensor of the model, `published`
// (compute::published_names) continues them. Shapes are the same if they are but for axes of 1.
// `parameters` are layout.size() floats; tensors that are not taken keep their values. Throws
// Invalid, with a message that begins with `field`, if a tensor has another shape (unless
// options.skip_mismatched) or a value that is not finite, if two go to one place, if no tensor is
// taken, and if `from` cannot be used at all; `parameters` are undefined then.
TakenWeights take_weights(const std::string& field, const std::filesystem::path& from,
                          const compute::ParameterLayout& layout, std::span<float> parameters,
                          const spec::InitializeOptions& options = {},
                          const std::vector<Rename>& published = {});

}  // namespace muster::checkpoint
