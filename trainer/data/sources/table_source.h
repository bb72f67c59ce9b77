#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/files/file_parts.h"
#include "trainer/data/sources/stored_dataset.h"
#include "trainer/data/tables/preparation.h"

namespace muster::data {

// What is known of a table before its samples are made.
struct TableIndex {
  Preparation preparation;
  std::vector<uint64_t> rows_of_files;
  spec::DataFacts facts;
};

// Reads a table of training data to decide its preparation, and one of other data to check it.
// Keeps what it has found, so that a second call reads nothing while the files are the same.
// Precondition: the source is a table. Throws Invalid.
const TableIndex& read_table_index(const spec::DataSource& source);

// Returns what a model that was trained on other data keeps, for these training data: its inputs
// and statistics are the same, and values that are new get spare inputs, but not those of frozen
// features. It is `kept` itself, and nothing is read, if the model was trained on these data
// before, or has no such inputs. Throws Invalid.
Json continue_preparation(const spec::DataSource& train, const Json& kept);

// Reads the samples that skip, take and split select.
Samples read_table(const spec::DataSource& source, StorageKind storage);
// Reads these parts, one after the other. Precondition: the rows have the order of the files.
Samples read_table_parts(const spec::DataSource& source, const std::vector<FilePart>& parts,
                         StorageKind storage);

}  // namespace muster::data
