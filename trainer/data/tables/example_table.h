#pragma once

#include <filesystem>
#include <memory>

#include "trainer/tables/table.h"

namespace muster::data {

// Opens a TFRecord file of tf.train.Example as a table: each feature is a column, in the order of
// their names. A column has lists if one of the records has several values of it. Reads all
// records. Throws Invalid, naming file and record, for damage, for what is not a tf.train.Example,
// and for a feature whose values have another type than in earlier records.
std::unique_ptr<const tables::Table> open_examples(const std::filesystem::path& file);

}  // namespace muster::data
