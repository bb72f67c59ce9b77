#include "trainer/data/tables/raw_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "common/error.h"
#include "common/text/listed.h"
#include "common/text/nearest.h"
#include "common/threads/mutex.h"
#include "trainer/records/file_pattern.h"

namespace muster::data {
namespace {

namespace fs = std::filesystem;
using tables::CellKind;
using tables::ColumnInfo;

constexpr size_t kMostColumnsNamed = 10;
constexpr uint64_t kMostBytesOpen = uint64_t{64} << 20;
constexpr double kMissingCell = std::numeric_limits<double>::quiet_NaN();

std::string in_quotes(const std::string& text) {
  return '"' + text + '"';
}

// Returns the number that a whole text is.
std::optional<double> number_in(std::string text, char decimal) {
  if (decimal == ',') std::ranges::replace(text, ',', '.');
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  const bool is_number = error == std::errc() && at == end && std::isfinite(number);
  return is_number ? std::optional(number) : std::nullopt;
}

FeatureKind kind_for(CellKind found) {
  if (found == CellKind::text) return FeatureKind::category;
  if (found == CellKind::texts) return FeatureKind::categories;
  return found == CellKind::numbers ? FeatureKind::vector : FeatureKind::number;
}

// Returns the parts of a text that are not empty.
std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return parts;
}

// The columns of a file by their names.
class Places {
 public:
  explicit Places(const TableFile& file) : file_(file) {
    for (size_t i = 0; i < file.columns().size(); ++i) places_[file.columns()[i].name].push_back(i);
  }
  // Throws Invalid if not exactly one column has this name.
  size_t of(const std::string& name) const {
    const auto found = places_.find(name);
    if (found == places_.end()) refuse(name);
    if (found->second.size() == 1) return found->second.front();
    throw Invalid(fmt::format("{}: expected one column named \"{}\", found {}",
                              file_.path().string(), name, found->second.size()));
  }

 private:
  [[noreturn]] void refuse(const std::string& name) const {
    std::vector<std::string> names;
    for (const ColumnInfo& column : file_.columns()) names.push_back(column.name);
    const std::string meant = did_you_mean(name, names);
    throw Invalid(fmt::format("{}: expected a column named \"{}\", found the columns {}{}",
                              file_.path().string(), name, listed(names, kMostColumnsNamed),
                              meant.empty() ? "" : "; " + meant));
  }

  const TableFile& file_;
  std::unordered_map<std::string_view, std::vector<size_t>> places_;
};

using Files = std::vector<std::shared_ptr<const TableFile>>;

// Exchanges the files that the last reader has left open, so that one reader at a time has them.
Files exchange_left_open(Files files) {
  static Mutex mutex;
  // Never destroyed, since at the end of the process Arrow is gone before.
  static Files* const left = new Files;
  const MutexLock lock(mutex);
  std::swap(*left, files);
  return files;
}

}  // namespace

const RawColumn& RawRows::column(const std::string& name) const {
  return *std::ranges::find(columns, name, &RawColumn::name);
}

void RawRows::refuse(uint64_t row, const std::string& column, const std::string& expected,
                     const std::string& found) const {
  throw Invalid(fmt::format("{}, column {}: expected {}, found {}",
                            place_of_row(file, format, first_of_file + row), column, expected,
                            found));
}

RawReader::RawReader(const spec::TableSource& source, Wanted wanted)
    : wanted_(std::move(wanted)),
      files_(table_files(source)),
      opened_(files_.size()),
      left_(exchange_left_open({})) {
  rows_.format = source.format;
  const auto file = open(0);
  const Places places(*file);
  const auto choose = [&](const WantedColumn& wanted) {
    const CellKind found = file->columns()[places.of(wanted.name)].kind;
    RawColumn column;
    column.name = wanted.name;
    column.kind = wanted.kind.value_or(kind_for(found));
    column.separator = wanted.separator.empty() ? " " : wanted.separator;
    rows_.columns.push_back(std::move(column));
    declared_.push_back(wanted.kind.has_value());
  };
  if (wanted_.all) {
    for (const ColumnInfo& column : file->columns()) {
      const bool is_named = std::ranges::find(wanted_.columns, column.name, &WantedColumn::name) !=
                            wanted_.columns.end();
      if (!column.name.empty() && !is_named) choose({column.name, std::nullopt});
    }
  }
  for (const WantedColumn& column : wanted_.columns) choose(column);
  known_.resize(rows_.columns.size());
}

std::shared_ptr<const TableFile> RawReader::open(size_t file) {
  if (opened_[file] != nullptr) return opened_[file];
  if (last_ != nullptr && last_->path() == files_[file]) return last_;
  last_.reset();  // two large files in memory would be one too many
  auto opened = last_ = take_or_open(file);
  std::error_code error;
  const uint64_t bytes = fs::file_size(files_[file], error);
  if (error || opened_bytes_ + bytes > kMostBytesOpen) return opened;
  opened_bytes_ += bytes;
  return opened_[file] = std::move(opened);
}

std::shared_ptr<const TableFile> RawReader::take_or_open(size_t file) {
  const std::vector<std::string> wanted = texts();
  for (auto& left : left_)
    if (left != nullptr && left->is(files_[file], rows_.format, wanted)) return std::move(left);
  left_.clear();
  return std::make_shared<TableFile>(files_[file], rows_.format, wanted);
}

RawReader::~RawReader() {
  std::erase(opened_, nullptr);
  if (last_ != nullptr && std::ranges::find(opened_, last_) == opened_.end())
    opened_.push_back(std::move(last_));
  exchange_left_open(std::move(opened_));
}

// Returns the columns that are known to be texts, so that the cells are as the file has them.
std::vector<std::string> RawReader::texts() const {
  std::vector<std::string> names;
  for (const RawColumn& column : rows_.columns)
    if (column.kind != FeatureKind::number) names.push_back(column.name);
  if (rows_.columns.empty())
    for (const WantedColumn& column : wanted_.columns)
      if (column.kind.value_or(FeatureKind::number) != FeatureKind::number)
        names.push_back(column.name);
  return names;
}

std::vector<uint64_t> RawReader::rows_of_files() {
  std::vector<uint64_t> rows;
  for (size_t i = 0; i < files_.size(); ++i) rows.push_back(open(i)->rows());
  return rows;
}

void RawReader::read(const std::function<void(const RawRows&)>& each) {
  rows_.first = 0;
  for (size_t i = 0; i < files_.size(); ++i) {
    const auto file = open(i);
    std::vector<size_t> places;
    const Places named(*file);
    for (const RawColumn& column : rows_.columns) places.push_back(named.of(column.name));
    rows_.file = files_[i];
    rows_.first_of_file = 0;
    for (size_t block = 0; block < file->rows_of_blocks().size(); ++block) {
      rows_.count = file->rows_of_blocks()[block];
      for (size_t column = 0; column < places.size(); ++column)
        read_column(*file, block, places[column], column);
      // Later rows have the kinds of the first ones.
      declared_.assign(declared_.size(), true);
      each(rows_);
      rows_.first += rows_.count;
      rows_.first_of_file += rows_.count;
    }
  }
}

void RawReader::read_column(const TableFile& file, size_t block, size_t place, size_t number) {
  RawColumn& column = rows_.columns[number];
  const ColumnInfo& info = file.columns()[place];
  const bool found_lists = info.kind == CellKind::texts || info.kind == CellKind::numbers;
  if (info.kind == CellKind::other || (found_lists && !column.has_lists()))
    throw Invalid(fmt::format(
        "{}, column {}: expected numbers or texts in UTF-8, found the type {}; data.train.table."
        "features says which columns are used",
        file.path().string(), column.name, info.type));
  column.cells.clear();
  column.numbers.clear();
  if (column.has_lists()) {
    if (found_lists)
      read_lists(file, block, place, number);
    else
      split_texts(file.read_texts(block, place), number);
  } else if (column.is_text()) {
    tables::Texts texts = file.read_texts(block, place);
    if (!declared_[number] && info.kind == CellKind::text) require_no_numbers(column, texts);
    number_texts(number, std::move(texts));
  } else if (info.kind == CellKind::text) {
    turn_into_numbers(column, file.read_texts(block, place));
  } else {
    read_numbers(file, block, place, column);
  }
  require_finite(column);
}

void RawReader::read_numbers(const TableFile& file, size_t block, size_t place, RawColumn& column) {
  column.numbers.resize(rows_.count);
  const int64_t inexact = file.read_numbers(block, place, column.numbers);
  if (inexact >= 0)
    rows_.refuse(static_cast<uint64_t>(inexact), column.name,
                 "an integer of at most 2^53, up to which numbers are exact",
                 in_quotes(file.read_texts(block, place).text(static_cast<size_t>(inexact))));
}

void RawReader::read_lists(const TableFile& file, size_t block, size_t place, size_t number) {
  RawColumn& column = rows_.columns[number];
  const bool found_numbers = file.columns()[place].kind == CellKind::numbers;
  tables::Lists lists = file.read_lists(block, place);
  column.ends = std::move(lists.ends);
  if (column.kind == FeatureKind::vector) {
    if (!found_numbers)
      throw Invalid(fmt::format("{}, column {}: expected lists of numbers, found lists of texts",
                                file.path().string(), column.name));
    column.numbers = std::move(lists.numbers);
    return;
  }
  if (found_numbers) {
    lists.texts.cells.reserve(lists.numbers.size());
    for (const double value : lists.numbers) {
      lists.texts.cells.push_back(static_cast<int32_t>(lists.texts.values.size()));
      lists.texts.values.push_back(fmt::format("{}", value));
    }
  }
  number_texts(number, std::move(lists.texts));
}

// Makes lists of texts like "a b c".
void RawReader::split_texts(const tables::Texts& texts, size_t number) {
  RawColumn& column = rows_.columns[number];
  std::vector<std::vector<std::string>> parts;  // of each different text
  for (const std::string& text : texts.values) parts.push_back(split(text, column.separator));
  tables::Texts all;
  uint64_t end = 0;
  column.ends.clear();
  for (size_t row = 0; row < texts.cells.size(); ++row) {
    if (texts.cells[row] >= 0) {
      for (const std::string& part : parts[static_cast<size_t>(texts.cells[row])]) {
        ++end;
        if (column.kind == FeatureKind::categories) {
          all.cells.push_back(static_cast<int32_t>(all.values.size()));
          all.values.push_back(part);
          continue;
        }
        const auto value = number_in(part, rows_.format.decimal);
        if (!value) rows_.refuse(row, column.name, "numbers", in_quotes(part));
        column.numbers.push_back(*value);
      }
    }
    column.ends.push_back(end);
  }
  if (column.kind == FeatureKind::categories) number_texts(number, std::move(all));
}

void RawReader::require_finite(const RawColumn& column) const {
  for (size_t i = 0; i < column.numbers.size(); ++i) {
    if (!std::isinf(column.numbers[i])) continue;
    const auto row = column.has_lists()
                         ? std::ranges::upper_bound(column.ends, i) - column.ends.begin()
                         : static_cast<std::ptrdiff_t>(i);
    rows_.refuse(static_cast<uint64_t>(row), column.name, "a finite number",
                 column.numbers[i] > 0 ? "\"inf\"" : "\"-inf\"");
  }
}

std::vector<std::optional<double>> RawReader::numbers_in(const tables::Texts& texts) const {
  std::vector<std::optional<double>> numbers;
  for (const std::string& text : texts.values)
    numbers.push_back(number_in(text, rows_.format.decimal));
  return numbers;
}

// Refuses a column of numbers of which some cells are none, and which therefore looks like texts.
void RawReader::require_no_numbers(const RawColumn& column, const tables::Texts& texts) const {
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
  rows_.refuse(static_cast<uint64_t>(first), column.name,
               fmt::format("a number, as {} of the {} cells have", count, all),
               in_quotes(texts.text(static_cast<size_t>(first))) +
                   "; if the column has categories, data.train.table.features says so by kind: "
                   "category");
}

// Replaces the numbers of a block's texts by those that all blocks have in common.
void RawReader::number_texts(size_t number, tables::Texts texts) {
  RawColumn& column = rows_.columns[number];
  std::vector<int32_t> numbers;
  for (const std::string& text : texts.values)
    numbers.push_back(known_[number].number(text, column.values));
  column.cells = std::move(texts.cells);
  for (int32_t& cell : column.cells)
    if (cell >= 0) cell = numbers[static_cast<size_t>(cell)];
}

void RawReader::turn_into_numbers(RawColumn& column, const tables::Texts& texts) const {
  const std::vector<std::optional<double>> numbers = numbers_in(texts);
  for (size_t row = 0; row < texts.cells.size(); ++row) {
    const int32_t cell = texts.cells[row];
    if (cell >= 0 && !numbers[static_cast<size_t>(cell)])
      rows_.refuse(row, column.name, "a number", in_quotes(texts.text(row)));
    column.numbers.push_back(cell < 0 ? kMissingCell : *numbers[static_cast<size_t>(cell)]);
  }
}

std::vector<fs::path> table_files(const spec::TableSource& source) {
  std::vector<fs::path> files;
  for (const fs::path& pattern : source.files)
    for (fs::path& file : records::expand(pattern.string())) files.push_back(std::move(file));
  return files;
}

void close_tables() {
  exchange_left_open({});
}

RawRows read_all(const spec::TableSource& source, const Wanted& wanted) {
  RawRows all;
  RawReader(source, wanted).read([&](const RawRows& rows) {
    if (all.columns.empty()) {
      all = rows;
      return;
    }
    all.count += rows.count;
    for (size_t i = 0; i < rows.columns.size(); ++i) {
      const RawColumn& from = rows.columns[i];
      RawColumn& to = all.columns[i];
      const uint64_t before = to.is_text() ? to.cells.size() : to.numbers.size();
      for (const uint64_t end : from.ends) to.ends.push_back(before + end);
      to.numbers.insert(to.numbers.end(), from.numbers.begin(), from.numbers.end());
      to.cells.insert(to.cells.end(), from.cells.begin(), from.cells.end());
      to.values = from.values;
    }
  });
  return all;
}

}  // namespace muster::data
