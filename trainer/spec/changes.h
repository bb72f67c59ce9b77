#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/document.h"

namespace muster::spec {

// A field of one `training` block that has another value in a second one.
struct Change {
  std::string path;    // below the block: "optimizer.learningRate"; of a list that grew or shrank,
                       // "model.layers[2]"
  Json before, after;  // null where there is none

  // "was 0.1, is 0.01"; long values are cut.
  std::string text() const;
};

// How far a field of a `training` block bears on the weights that a training comes to.
enum class Bearing {
  none,   // the weights are the same with any value
  end,    // when training ends, or in which arithmetic: what was trained so far stays valid
  course  // what each step does
};
Bearing bearing_of(const std::string& path);

// Whether `path` is the field `parent`, or one within it.
bool is_below(std::string_view path, std::string_view parent);

// Every leaf that differs, in the order of `after`, then those that are gone. A field that is null
// is the same as one that is left out, as the schema has it. Any JSON may be compared.
std::vector<Change> changes(const Json& before, const Json& after);

// Those of changes() that bear on the weights. Both are whole blocks; `before` may be one that an
// earlier version of Muster wrote: fields that it did not know count as their defaults.
std::vector<Change> changes_of_weights(const Json& before, const Json& after);

// `training` with the defaults of all fields that it leaves out; nothing where it is of a version
// of Muster whose fields are not ours.
std::optional<Json> with_defaults(const Json& training);

// "batchSize (was 32, is 64), seed (was 1, is 2) and 3 more"; at most `most` by name.
std::string list_changes(const std::vector<Change>& changes, size_t most = 3);

}  // namespace muster::spec
