#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/idx.h"
#include "trainer/data/memory_dataset.h"
#include "trainer/data/selection.h"

namespace muster::data {

// The samples of an IDX source, numbered through its files.
struct IdxIndex {
  std::vector<uint64_t> samples;  // of each file
  std::vector<int64_t> shape;     // of one sample
  uint64_t total() const;
};

// Reads the headers of the images. Throws Invalid as read_idx_shape does, and naming both files
// where two have samples of different shapes.
IdxIndex read_idx_index(const spec::IdxSource& source);

// The labels of one of its files; `images`: how many it must have. Throws Invalid.
IdxLabels read_labels_of(const spec::IdxFiles& files, uint64_t images);

// Consecutive samples of one file.
struct FilePart {
  size_t file = 0;
  uint64_t first = 0;  // of the file
  uint64_t count = 0;  // at least 1
};

// What the selection leaves, by file; files of which nothing is left are not among them. Throws
// Invalid as select() does.
std::vector<FilePart> selected_parts(const spec::IdxSource& source, const IdxIndex& index,
                                     const Selection& selection);

// Reads these parts, one after the other, and the labels of all files, for the largest of them is
// that of the source; where the first file has no labels, none has. Files are read to their ends.
// Throws Invalid naming file and byte.
Samples read_idx_parts(const spec::IdxSource& source, const IdxIndex& index,
                       const std::vector<FilePart>& parts, StorageKind storage);

}  // namespace muster::data
