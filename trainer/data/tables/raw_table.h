#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/spec/data_source.h"

namespace muster::data {

// A column that is wanted of every file.
struct WantedColumn {
  std::string name;
  std::optional<bool> is_text;  // nothing: the first file decides
};

// A column of all files together.
struct RawColumn {
  std::string name;
  bool is_text = false;
  std::vector<double> numbers;      // of numbers; NaN: missing
  std::vector<int32_t> cells;       // of texts: numbers of `values`; -1: missing
  std::vector<std::string> values;  // of texts: the different texts
};

// The wanted columns of all files of a table.
struct RawTable {
  std::vector<std::filesystem::path> files;
  std::vector<uint64_t> rows_of_files;
  spec::TableFormat format;
  std::vector<RawColumn> columns;

  uint64_t rows() const;
  // Returns the file and the line of a row of all files, for messages.
  std::string place(uint64_t row) const;
  // Throws Invalid, "FILE, line 12, column age: expected ..., found ...".
  [[noreturn]] void refuse(uint64_t row, const std::string& column, const std::string& expected,
                           const std::string& found) const;
};

// Returns the files that the source's patterns name. Throws Invalid.
std::vector<std::filesystem::path> table_files(const spec::TableSource& source);

struct Wanted {
  // Whether all other columns of the first file that have a name are wanted too; they come first.
  bool all = false;
  std::vector<WantedColumn> columns;
};

// Reads the wanted columns of all files, which may have their columns in any order, and others
// besides. Throws Invalid, naming file, line and column, for a column that is missing or there
// twice, a text in a column of numbers, an infinite number, an integer that a double does not keep
// exactly, and a column of what is neither number nor text.
RawTable read_raw_table(const spec::TableSource& source, const Wanted& wanted);

}  // namespace muster::data
