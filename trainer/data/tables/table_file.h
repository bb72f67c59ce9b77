#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trainer/spec/data_source.h"
#include "trainer/tables/table.h"

namespace muster::data {

// Returns the format of a file, "csv", "parquet", "arrow" or "numpy", by `format` or by the file's
// ending. Throws Invalid for another ending.
std::string format_name(const std::filesystem::path& file, const spec::TableFormat& format);

// Whether the ending of a file's name is one of a table.
bool is_table_name(const std::filesystem::path& file);

// Reads a whole file. The columns named in `texts` are read as text where the file does not say
// what its cells are (CSV). Throws Invalid naming the file, and where it is known the line.
std::unique_ptr<const tables::Table> read_table_file(const std::filesystem::path& file,
                                                     const spec::TableFormat& format,
                                                     const std::vector<std::string>& texts = {});

// Returns the place of a row, counted from 0 without the header, for messages: "a.csv, line 12" or
// "a.parquet, row 11", which is the 11th.
std::string place_of_row(const std::filesystem::path& file, const spec::TableFormat& format,
                         uint64_t row);

}  // namespace muster::data
