#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::checkpoint {

// The table format of LevelDB (doc/table_format.md there), in which TensorFlow writes the index of
// a checkpoint. LevelDB's own reader allocates as much memory as a file claims to need, so it is
// not used for unchecked files. The constants limit a table, so that a hostile one does not cost
// more memory.
inline constexpr size_t kMostTableBytes = size_t{64} << 20;     // limit of the file and of a block
inline constexpr size_t kMostTableContent = size_t{256} << 20;  // limit of all keys and values
inline constexpr size_t kLongestKey = 4096;

using TableEntries = std::vector<std::pair<std::string, std::string>>;

// Returns all keys and values, by ascending key. Throws Invalid naming `file`, and the byte, for
// anything that is not a whole table: truncated files, wrong checksums, blocks outside of the file,
// keys that do not ascend.
TableEntries read_table(std::string_view bytes, const std::string& file);

// Unpacks `bytes`, which Snappy has compressed (format_description.txt of google/snappy). Throws
// Invalid, naming `where`, if the bytes are damaged or unpack to more than `most` bytes.
std::string unpack_snappy(std::string_view bytes, size_t most, const std::string& where);

}  // namespace muster::checkpoint
