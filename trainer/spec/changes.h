#pragma once

#include <string>
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

// Every leaf that differs, in the order of `after`, then those that are gone. A field that is null
// is the same as one that is left out, as the schema has it. Any JSON may be compared.
std::vector<Change> changes(const Json& before, const Json& after);

// "batchSize (was 32, is 64), seed (was 1, is 2) and 3 more"; at most `most` by name.
std::string list_changes(const std::vector<Change>& changes, size_t most = 3);

}  // namespace muster::spec
