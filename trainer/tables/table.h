#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace muster::tables {

// What the cells of a column are. `numbers` and `texts` are lists. `empty` is a column in which
// every cell is missing, and `other` is what none of these can stand for, for example a structure.
enum class CellKind { integer, number, boolean, time, text, empty, numbers, texts, other };

struct ColumnInfo {
  std::string name;
  CellKind kind = CellKind::empty;
  std::string type;  // the name of the type in the file, for messages: "int64"
};

// The cells of a column as texts: each is a number of `values`, or -1 if it is missing.
struct Texts {
  std::vector<std::string> values;  // different texts, in the order of their first use
  std::vector<int32_t> cells;

  std::string text(size_t row) const {
    return cells[row] < 0 ? "" : values[static_cast<size_t>(cells[row])];
  }
};

// Lists, one after the other.
struct Lists {
  std::vector<uint64_t> ends;   // of each row: where its list ends
  std::vector<double> numbers;  // the entries of all lists of numbers; NaN: missing
  Texts texts;                  // the entries of all lists of texts
};

// A file that was opened. Its rows are in blocks, and one block of one column is read at a time: a
// row group of Parquet, a batch of Arrow, the whole of another file.
class Table {
 public:
  virtual ~Table() = default;

  virtual const std::vector<ColumnInfo>& columns() const = 0;
  virtual const std::vector<uint64_t>& rows_of_blocks() const = 0;
  // Writes the cells of a column, which must be integers, numbers, booleans (0 and 1), times
  // (seconds since 1970 or since midnight) or empty. A missing cell is NaN. Returns the first row
  // of the block with an integer that a double does not keep exactly; -1: there is none. Throws
  // std::runtime_error for a part of the file that cannot be read.
  virtual int64_t read_numbers(size_t block, size_t column, std::span<double> cells) const = 0;
  // Reads any column but lists and `other`. Throws as read_numbers() does.
  virtual Texts read_texts(size_t block, size_t column) const = 0;
  // Reads a column of lists; a missing list is empty. Throws as read_numbers() does.
  virtual Lists read_lists(size_t block, size_t column) const = 0;
};

struct ReadOptions {
  std::string format;              // csv, parquet or arrow
  char separator = ',';            // of CSV
  char decimal = '.';              // of CSV
  bool header = true;              // of CSV: whether the first row has the names
  std::vector<std::string> texts;  // of CSV: columns that are read as text, whatever is in them
};

// What is wrong with a file.
struct ReadError {
  std::string text;  // "expected 3 columns, found 2"; empty: nothing
  int64_t row = -1;  // the row in the file, from 0, without the header; -1: not known
};

// A column to write: of texts, or of numbers.
struct WrittenColumn {
  std::string name;
  bool is_text = false;
  std::vector<std::string> texts;
  std::vector<double> numbers;
};

// A function of libmuster_tables.so: writes a Parquet file. Returns what is wrong; "": nothing.
using WriteParquet = std::string(const char* path, const std::vector<WrittenColumn>& columns);
inline constexpr const char* kWriteParquet = "muster_write_parquet";

// The other function of libmuster_tables.so: opens a file. Returns null and sets `error` for a file
// that cannot be read. Throws nothing.
using OpenTable = Table*(const char* path, const ReadOptions& options, ReadError& error);
inline constexpr const char* kOpenTable = "muster_open_table";

}  // namespace muster::tables
