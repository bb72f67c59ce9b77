#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/tables/table_file.h"
#include "trainer/spec/data_source.h"
#include "trainer/tables/text_numbers.h"

namespace muster::data {

using spec::FeatureKind;

// A column that is wanted of every file.
struct WantedColumn {
  std::string name;
  std::optional<FeatureKind> kind;  // nothing: the first file decides
  std::string separator = {};       // of several in a text; empty: a space
};

struct RawColumn {
  std::string name;
  FeatureKind kind = FeatureKind::number;
  std::string separator;
  std::vector<double> numbers;  // of numbers and vectors; NaN: missing
  std::vector<int32_t> cells;   // of one or several categories: numbers of `values`; -1: missing
  std::vector<uint64_t> ends;   // of several categories and vectors: where those of each row end
  // The different categories of all rows that were read so far, in the order of first use.
  std::vector<std::string> values;

  bool is_text() const { return kind == FeatureKind::category || kind == FeatureKind::categories; }
  bool has_lists() const { return kind == FeatureKind::categories || kind == FeatureKind::vector; }
  uint64_t begin(uint64_t row) const { return row == 0 ? 0 : ends[row - 1]; }
};

// The wanted columns of consecutive rows of one file.
struct RawRows {
  std::filesystem::path file;
  spec::TableFormat format;
  uint64_t first_of_file = 0;  // the first row's number in its file
  uint64_t first = 0;          // and its number in all files
  uint64_t count = 0;
  std::vector<RawColumn> columns;

  const RawColumn& column(const std::string& name) const;
  // Throws Invalid, "FILE, line 12, column age: expected ..., found ...", for one of these rows.
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

// Reads the wanted columns of all files of a table, which may have their columns in any order, and
// others besides. Keeps one block of rows in memory, and the different texts. All functions throw
// Invalid, naming file, line and column, for a column that is missing or there twice, a text in a
// column of numbers, an infinite number, an integer that a double does not keep exactly, and cells
// that are not of the column's kind.
class RawReader {
 public:
  // Looks at the first file to decide the columns.
  RawReader(const spec::TableSource& source, Wanted wanted);
  // Leaves its files open for the next reader.
  ~RawReader();
  RawReader(const RawReader&) = delete;
  RawReader& operator=(const RawReader&) = delete;

  const std::vector<std::filesystem::path>& files() const { return files_; }
  // Opens every file.
  std::vector<uint64_t> rows_of_files();
  // Calls `each` with all rows, in order, block by block.
  void read(const std::function<void(const RawRows&)>& each);

 private:
  std::shared_ptr<const TableFile> open(size_t file);
  std::shared_ptr<const TableFile> take_or_open(size_t file);
  std::vector<std::string> texts() const;
  void read_column(const TableFile& file, size_t block, size_t place, size_t number);
  void read_numbers(const TableFile& file, size_t block, size_t place, RawColumn& column);
  void read_lists(const TableFile& file, size_t block, size_t place, size_t number);
  void split_texts(const tables::Texts& texts, size_t number);
  std::vector<std::optional<double>> numbers_in(const tables::Texts& texts) const;
  void require_no_numbers(const RawColumn& column, const tables::Texts& texts) const;
  void number_texts(size_t number, tables::Texts texts);
  void turn_into_numbers(RawColumn& column, const tables::Texts& texts) const;
  void require_finite(const RawColumn& column) const;

  const Wanted wanted_;
  const std::vector<std::filesystem::path> files_;
  // Files that stay open, since reading them again would cost more than the memory that they take:
  // small ones, and the last one.
  std::vector<std::shared_ptr<const TableFile>> opened_;
  uint64_t opened_bytes_ = 0;
  std::shared_ptr<const TableFile> last_;
  // What the reader before this one has left open.
  std::vector<std::shared_ptr<const TableFile>> left_;
  RawRows rows_;
  // By column: whether the manifest, a model or earlier rows say what its cells are.
  std::vector<bool> declared_;
  std::vector<tables::TextNumbers> known_;  // by column: numbers of texts
};

// Closes the files that the last reader has left open.
void close_tables();

// Reads all rows into memory.
RawRows read_all(const spec::TableSource& source, const Wanted& wanted);

}  // namespace muster::data
