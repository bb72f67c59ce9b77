#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/files/file_parts.h"
#include "trainer/data/files/idx.h"
#include "trainer/data/sources/stored_dataset.h"

namespace muster::data {

// The samples of an IDX source, numbered through its files.
struct IdxIndex {
  std::vector<uint64_t> samples;  // number of samples by file
  std::vector<int64_t> shape;     // shape of one sample
  uint64_t total() const;
};

// Reads the headers of the images. Throws Invalid like read_idx_shape(), and, naming both files, if
// two files have samples of different shapes.
IdxIndex read_idx_index(const spec::IdxSource& source);

// Reads the labels of one pair of files, which must have `images` labels. Throws Invalid.
IdxLabels read_labels_of(const spec::IdxFiles& files, uint64_t images);

// Returns the selected samples, by file; files without selected samples are left out. Throws
// Invalid like select().
std::vector<FilePart> selected_parts(const spec::IdxSource& source, const IdxIndex& index,
                                     const Selection& selection);

// Reads these parts, one after the other, and the labels of all files, because the largest label of
// all files counts. If the first file has no labels, no file may have labels. Files are read to
// their ends. Throws Invalid naming file and byte.
Samples read_idx_parts(const spec::IdxSource& source, const IdxIndex& index,
                       const std::vector<FilePart>& parts, StorageKind storage);

}  // namespace muster::data
