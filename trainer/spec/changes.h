#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/documents/document.h"

namespace muster::spec {

// A field of one `training` block that has another value in a second block.
struct Change {
  std::string path;    // path below the block: "optimizer.learningRate"; for a list that grew or
                       // shrank, "model.layers[2]"
  Json before, after;  // null: no value

  // Returns "was 0.1, is 0.01"; long values are cut.
  std::string text() const;
};

// How a field of a `training` block influences the weights of the training.
enum class Bearing {
  none,   // the weights are the same with any value
  end,    // when training ends, or its arithmetic: the training so far stays valid
  course  // the result of each step
};
Bearing bearing_of(const std::string& path);

// Returns whether `path` is the field `parent`, or a field within it.
bool is_below(std::string_view path, std::string_view parent);

// Returns every leaf that differs, in the order of `after`, then the removed ones. A field that is
// null is the same as a missing one, as in the schema. Any JSON may be compared.
std::vector<Change> changes(const Json& before, const Json& after);

// Returns those of changes() that influence the weights. Both are whole blocks. `before` may come
// from an earlier version of Muster: fields that this version did not know have their defaults.
std::vector<Change> changes_of_weights(const Json& before, const Json& after);

// Returns `training` with the defaults of all fields that it leaves out; nothing if `training` does
// not fit our schema because another version of Muster has written it.
std::optional<Json> with_defaults(const Json& training);

// Returns "batchSize (was 32, is 64), seed (was 1, is 2) and 3 more"; names at most `most` changes.
std::string list_changes(const std::vector<Change>& changes, size_t most = 3);

}  // namespace muster::spec
