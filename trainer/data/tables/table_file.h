#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/spec/data_source.h"
#include "trainer/tables/table.h"

namespace muster::data {

// Returns the format of a file, "csv", "parquet", "arrow", "numpy" or "tfrecord", by `format` or by
// the file's ending. Throws Invalid for another ending.
std::string format_name(const std::filesystem::path& file, const spec::TableFormat& format);

// Whether the ending of a file's name is one of a table.
bool is_table_name(const std::filesystem::path& file);

// A file of a table that was opened.
class TableFile {
 public:
  // Opens a file. The columns named in `texts` are read as text where the file does not say what
  // its cells are (CSV). Throws Invalid naming the file, and where it is known the line.
  TableFile(std::filesystem::path file, const spec::TableFormat& format,
            const std::vector<std::string>& texts = {});

  const std::filesystem::path& path() const { return path_; }
  // Whether opening this file now would give the same cells.
  bool is(const std::filesystem::path& file, const spec::TableFormat& format,
          const std::vector<std::string>& texts) const;
  const std::vector<tables::ColumnInfo>& columns() const { return table_->columns(); }
  const std::vector<uint64_t>& rows_of_blocks() const { return table_->rows_of_blocks(); }
  uint64_t rows() const;
  // See tables::Table. Throw Invalid naming the file.
  int64_t read_numbers(size_t block, size_t column, std::span<double> cells) const;
  tables::Texts read_texts(size_t block, size_t column) const;
  tables::Lists read_lists(size_t block, size_t column) const;

 private:
  const std::filesystem::path path_;
  const spec::TableFormat format_;
  const std::vector<std::string> texts_;
  const std::string version_;  // changes when the file does
  std::unique_ptr<const tables::Table> table_;
};

// Writes a Parquet file, which replaces an existing one once it is whole. Throws Invalid naming the
// file.
void write_parquet(const std::filesystem::path& file,
                   const std::vector<tables::WrittenColumn>& columns);

// Returns the place of a row, counted from 0 without the header, for messages: "a.csv, line 12" or
// "a.parquet, row 11", which is the 11th.
std::string place_of_row(const std::filesystem::path& file, const spec::TableFormat& format,
                         uint64_t row);

}  // namespace muster::data
