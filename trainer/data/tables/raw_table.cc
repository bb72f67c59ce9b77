#include "trainer/data/tables/raw_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <unordered_map>

#include "common/error.h"
#include "common/text/listed.h"
#include "common/text/nearest.h"
#include "trainer/data/tables/table_file.h"
#include "trainer/records/file_pattern.h"

namespace muster::data {
namespace {

namespace fs = std::filesystem;
using tables::CellKind;
using tables::ColumnInfo;

constexpr size_t kMostColumnsNamed = 10;
constexpr double kMissingCell = std::numeric_limits<double>::quiet_NaN();

// Returns the number that a whole text is.
std::optional<double> number_in(std::string text, char decimal) {
  if (decimal == ',') std::ranges::replace(text, ',', '.');
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  const bool is_number = error == std::errc() && at == end && std::isfinite(number);
  return is_number ? std::optional(number) : std::nullopt;
}

// Reads one file after the other into the columns of a RawTable.
class RawReader {
 public:
  RawReader(const spec::TableSource& source, const Wanted& wanted) : wanted_(wanted) {
    raw_.files = table_files(source);
    raw_.format = source.format;
  }

  RawTable read() {
    for (const fs::path& file : raw_.files) read_file(file);
    return std::move(raw_);
  }

 private:
  // Returns the columns that are known to be texts, so that the cells are as the file has them.
  std::vector<std::string> texts() const {
    std::vector<std::string> names;
    if (raw_.columns.empty()) {
      for (const WantedColumn& column : wanted_.columns)
        if (column.is_text.value_or(false)) names.push_back(column.name);
    } else {
      for (const RawColumn& column : raw_.columns)
        if (column.is_text) names.push_back(column.name);
    }
    return names;
  }

  void read_file(const fs::path& file) {
    file_ = &file;
    const auto table = read_table_file(file, raw_.format, texts());
    table_ = table.get();
    places_.clear();
    for (size_t i = 0; i < table->columns().size(); ++i)
      places_[table->columns()[i].name].push_back(i);
    raw_.rows_of_files.push_back(table->rows());
    // Later files have the kinds of the first one.
    if (raw_.columns.empty())
      choose_columns();
    else
      declared_.assign(declared_.size(), true);
    for (size_t i = 0; i < raw_.columns.size(); ++i) read_column(raw_.columns[i], declared_[i]);
  }

  // Decides the columns by the first file.
  void choose_columns() {
    if (wanted_.all) {
      for (const ColumnInfo& column : table_->columns()) {
        const bool is_named = std::ranges::find(wanted_.columns, column.name,
                                                &WantedColumn::name) != wanted_.columns.end();
        if (!column.name.empty() && !is_named) choose({column.name, std::nullopt});
      }
    }
    for (const WantedColumn& column : wanted_.columns) choose(column);
  }

  void choose(const WantedColumn& wanted) {
    const bool is_text =
        wanted.is_text.value_or(table_->columns()[place_of(wanted.name)].kind == CellKind::text);
    raw_.columns.push_back({wanted.name, is_text, {}, {}, {}});
    declared_.push_back(wanted.is_text.has_value());
  }

  size_t place_of(const std::string& name) const {
    const auto found = places_.find(name);
    if (found != places_.end() && found->second.size() == 1) return found->second.front();
    std::vector<std::string> names;
    for (const ColumnInfo& column : table_->columns()) names.push_back(column.name);
    if (found == places_.end()) {
      const std::string meant = did_you_mean(name, names);
      throw Invalid(fmt::format("{}: expected a column named \"{}\", found the columns {}{}",
                                file_->string(), name, listed(names, kMostColumnsNamed),
                                meant.empty() ? "" : "; " + meant));
    }
    throw Invalid(fmt::format("{}: expected one column named \"{}\", found {}", file_->string(),
                              name, found->second.size()));
  }

  // `is_declared`: the manifest or a model says what the column is.
  void read_column(RawColumn& column, bool is_declared) {
    const size_t place = place_of(column.name);
    const ColumnInfo& info = table_->columns()[place];
    if (info.kind == CellKind::other)
      throw Invalid(fmt::format(
          "{}, column {}: expected numbers or texts in UTF-8, found the type {}; data.train.table."
          "features says which columns are used",
          file_->string(), column.name, info.type));
    if (!column.is_text && info.kind != CellKind::text) {
      read_numbers(column, place);
      return;
    }
    tables::Texts texts = table_->read_texts(place);
    if (column.is_text) {
      if (!is_declared && info.kind == CellKind::text) require_no_numbers(column, texts);
      append(column, std::move(texts));
    } else {
      append_as_numbers(column, texts);
    }
  }

  void read_numbers(RawColumn& column, size_t place) {
    const size_t before = column.numbers.size();
    column.numbers.resize(before + table_->rows());
    const std::span<double> cells = std::span(column.numbers).subspan(before);
    const int64_t inexact = table_->read_numbers(place, cells);
    if (inexact >= 0)
      refuse(inexact, column, "an integer of at most 2^53, up to which numbers are exact",
             table_->read_texts(place).text(static_cast<size_t>(inexact)));
    for (size_t row = 0; row < cells.size(); ++row)
      if (std::isinf(cells[row]))
        refuse(static_cast<int64_t>(row), column, "a finite number",
               cells[row] > 0 ? "inf" : "-inf");
  }

  std::vector<std::optional<double>> numbers_in(const tables::Texts& texts) const {
    std::vector<std::optional<double>> numbers;
    for (const std::string& text : texts.values)
      numbers.push_back(number_in(text, raw_.format.decimal));
    return numbers;
  }

  // Refuses a column of numbers of which some cells are none, and which therefore looks like texts.
  void require_no_numbers(const RawColumn& column, const tables::Texts& texts) const {
    const std::vector<std::optional<double>> numbers = numbers_in(texts);
    uint64_t count = 0, all = 0;
    int64_t first = -1;
    for (size_t row = 0; row < texts.cells.size(); ++row) {
      if (texts.cells[row] < 0) continue;
      ++all;
      if (numbers[static_cast<size_t>(texts.cells[row])])
        ++count;
      else if (first < 0)
        first = static_cast<int64_t>(row);
    }
    if (first < 0 || 2 * count < all) return;
    refuse(first, column, fmt::format("a number, as {} of the {} cells have", count, all),
           texts.text(static_cast<size_t>(first)),
           "; if the column has categories, data.train.table.features says so by kind: category");
  }

  void append(RawColumn& column, tables::Texts texts) {
    auto& known = known_[&column];
    std::vector<int32_t> numbers;
    for (std::string& text : texts.values) {
      const auto [at, is_new] = known.try_emplace(text, static_cast<int32_t>(column.values.size()));
      if (is_new) column.values.push_back(std::move(text));
      numbers.push_back(at->second);
    }
    for (const int32_t cell : texts.cells)
      column.cells.push_back(cell < 0 ? -1 : numbers[static_cast<size_t>(cell)]);
  }

  void append_as_numbers(RawColumn& column, const tables::Texts& texts) const {
    const std::vector<std::optional<double>> numbers = numbers_in(texts);
    for (size_t row = 0; row < texts.cells.size(); ++row) {
      const int32_t cell = texts.cells[row];
      if (cell >= 0 && !numbers[static_cast<size_t>(cell)])
        refuse(static_cast<int64_t>(row), column, "a number", texts.text(row));
      column.numbers.push_back(cell < 0 ? kMissingCell : *numbers[static_cast<size_t>(cell)]);
    }
  }

  // `row` is that of the file.
  [[noreturn]] void refuse(int64_t row, const RawColumn& column, const std::string& expected,
                           const std::string& found, const std::string& hint = "") const {
    throw Invalid(fmt::format("{}, column {}: expected {}, found \"{}\"{}",
                              place_of_row(*file_, raw_.format, static_cast<uint64_t>(row)),
                              column.name, expected, found, hint));
  }

  const Wanted& wanted_;
  RawTable raw_;
  std::vector<bool> declared_;  // by column
  std::unordered_map<const RawColumn*, std::unordered_map<std::string, int32_t>> known_;
  const fs::path* file_ = nullptr;
  const tables::Table* table_ = nullptr;
  std::unordered_map<std::string, std::vector<size_t>> places_;  // columns of the file by name
};

}  // namespace

uint64_t RawTable::rows() const {
  return std::accumulate(rows_of_files.begin(), rows_of_files.end(), uint64_t{0});
}

std::string RawTable::place(uint64_t row) const {
  size_t file = 0;
  for (; row >= rows_of_files[file]; ++file) row -= rows_of_files[file];
  return place_of_row(files[file], format, row);
}

void RawTable::refuse(uint64_t row, const std::string& column, const std::string& expected,
                      const std::string& found) const {
  throw Invalid(
      fmt::format("{}, column {}: expected {}, found {}", place(row), column, expected, found));
}

std::vector<fs::path> table_files(const spec::TableSource& source) {
  std::vector<fs::path> files;
  for (const fs::path& pattern : source.files)
    for (fs::path& file : records::expand(pattern.string())) files.push_back(std::move(file));
  return files;
}

RawTable read_raw_table(const spec::TableSource& source, const Wanted& wanted) {
  return RawReader(source, wanted).read();
}

}  // namespace muster::data
