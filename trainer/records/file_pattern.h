#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace muster::records {

// Returns the files that match a shell pattern (`*`, `?`, `[...]`), for example
// "train-*-of-*.tfrecord". Files whose names contain "<index>-of-<count>" are shards: they come in
// the order of their index, and all of them must exist. Other files come in the order of their
// names. A name without `*`, `?` and `[` is one file, even if it is one shard of several. Throws
// Invalid naming the pattern if there is no file; if shards are missing, exist twice, or have
// different counts; or if only some of the files are shards. Throws Unavailable if a folder cannot
// be read.
std::vector<std::filesystem::path> expand(const std::string& pattern);

}  // namespace muster::records
