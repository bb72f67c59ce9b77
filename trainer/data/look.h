#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/spec/check.h"

namespace muster::data {

// Reads what the files of a source say of its samples; of IDX files the header of the images and
// all labels, but no pixels. Returns nothing if a file is not here or cannot be opened, or for a
// synthetic source; errors in files that are here are in DataFacts::malformed.
std::optional<spec::DataFacts> look_at(const spec::DataSource& source);

struct UnreadableFile {
  std::string field;  // as in spec::NamedFile
  std::string why;    // "FILE: expected IDX images, found no such file"
};
// Returns the files of a source that are not here or cannot be opened; none for a synthetic source.
std::vector<UnreadableFile> unreadable_files(const spec::DataSource& source);

// Reads a source's files to their ends and keeps nothing. It takes as long as reading them,
// and finds errors that look_at cannot see: truncation, and damage that only gzip's checksum shows.
// Throws Invalid naming file and byte. Does nothing for a synthetic source.
void read_through(const spec::DataSource& source);

}  // namespace muster::data
