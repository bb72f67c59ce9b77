#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/spec/check.h"

namespace muster::data {

// Finds out how many samples a source has, and of which classes, without reading pixels: from
// headers and labels of IDX, names of folders and files, a list of images, lengths of records.
// Returns nothing if a file that the manifest names does not exist here or cannot be opened, and
// for a synthetic source. Errors in existing files, and a folder in place of a file or the reverse,
// are in DataFacts::malformed.
std::optional<spec::DataFacts> look_at(const spec::DataSource& source);

struct UnreadableFile {
  std::string field;  // field of the source: images, labels or files[3].images
  std::string why;    // "FILE: expected IDX images, found no such file"
  // Whether there is something else: a folder instead of a file, or a file instead of a folder.
  bool is_other_kind = false;
};
// Returns the files and folders in the manifest that do not exist here or cannot be opened; none
// for a synthetic source.
std::vector<UnreadableFile> unreadable_files(const spec::DataSource& source);

// Reads an IDX source's files to their ends and keeps nothing. This takes as long as reading the
// files, and finds errors that look_at() cannot find: truncation, and damage that only gzip's
// checksum shows. Throws Invalid naming file and byte. Does nothing for other sources: damaged
// images are counted as they are used.
void read_through(const spec::DataSource& source);

}  // namespace muster::data
