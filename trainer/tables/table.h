#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace muster::tables {

// What the cells of a column are. `other` is what no number and no text can stand for, for example
// a list. `empty` is a column in which every cell is missing.
enum class CellKind { integer, number, boolean, time, text, empty, other };

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

// The content of one file.
class Table {
 public:
  virtual ~Table() = default;

  virtual const std::vector<ColumnInfo>& columns() const = 0;
  virtual uint64_t rows() const = 0;
  // Writes the cells of a column, which must be integers, numbers, booleans (0 and 1), times
  // (seconds since 1970 or since midnight) or empty. A missing cell is NaN. Returns the first row
  // with an integer that a double does not keep exactly; -1: there is none.
  virtual int64_t read_numbers(size_t column, std::span<double> cells) const = 0;
  // Reads any column but `other`.
  virtual Texts read_texts(size_t column) const = 0;
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

// The only function of libmuster_tables.so. Returns null and sets `error` for a file that cannot be
// read. Throws nothing.
using ReadTable = Table*(const char* path, const ReadOptions& options, ReadError& error);
inline constexpr const char* kReadTable = "muster_read_table";

}  // namespace muster::tables
