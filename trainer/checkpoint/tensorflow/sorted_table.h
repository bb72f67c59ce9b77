#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::checkpoint {

// The table format of LevelDB (doc/table_format.md there), in which TensorFlow writes the index of
// a checkpoint. LevelDB's own reader reserves as much memory as a file says that it needs, and so
// is not used for files that nobody has checked.

// The most that a table may have, so that a hostile one costs no more memory.
inline constexpr size_t kMostTableBytes = size_t{64} << 20;     // of the file, and of a block
inline constexpr size_t kMostTableContent = size_t{256} << 20;  // of all keys and values
inline constexpr size_t kLongestKey = 4096;

using TableEntries = std::vector<std::pair<std::string, std::string>>;

// Returns all keys and values, by ascending key. Throws Invalid naming `file`, and the byte, for
// anything that is no whole table: a truncated one, checksums that do not fit, blocks outside of
// the file, keys that do not ascend.
TableEntries read_table(std::string_view bytes, const std::string& file);

// Returns what Snappy has compressed to `bytes` (format_description.txt of google/snappy). Throws
// Invalid, naming `where`, if it is damaged or comes to more than `most` bytes.
std::string unpack_snappy(std::string_view bytes, size_t most, const std::string& where);

}  // namespace muster::checkpoint
