#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/spec/check.h"

namespace muster::data {

// What an IDX source's files say of themselves: the header of the images, and all labels. Nothing
// where a file is not here or cannot be opened, or for a synthetic source; what is wrong with files
// that are here is in DataFacts::malformed. Reads no pixels.
std::optional<spec::DataFacts> look_at(const spec::DataSource& source);

struct UnreadableFile {
  std::string field;  // of `idx`: images, labels or files[3].images
  std::string why;    // "FILE: expected IDX images, found no such file"
};
// The files of an IDX source that are not here or cannot be opened; none for another source.
std::vector<UnreadableFile> unreadable_files(const spec::DataSource& source);

// Reads an IDX source's files to their ends and keeps nothing, as long as reading them takes: what
// look_at cannot see, truncation and damage that only gzip's checksum tells. Throws Invalid naming
// file and byte. Does nothing for a synthetic source.
void read_through(const spec::DataSource& source);

}  // namespace muster::data
