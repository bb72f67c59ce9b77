#include "trainer/data/tables/table_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <tuple>

#include "common/error.h"
#include "common/system/file.h"
#include "common/system/shared_library.h"
#include "trainer/data/files/source_file.h"
#include "trainer/data/tables/example_table.h"
#include "trainer/data/tables/numpy_table.h"

namespace muster::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWithoutArrow =
    "tables: expected libmuster_tables.so with Apache Arrow, which reads them, found none. In a "
    "clone of Muster `make run` installs it: deploy/setup/arrow.sh says why it cannot. ";

// The library stays open until the process ends: what it has made may outlive every reader.
struct Library {
  tables::OpenTable* open = nullptr;
  tables::WriteParquet* write_parquet = nullptr;
};

const Library& library() {
  static const Library library = [] {
    Library found;
    try {
      SharedLibrary opened("tables", "the library that reads them", "libmuster_tables.so", true);
      opened.find(found.open, tables::kOpenTable);
      opened.find(found.write_parquet, tables::kWriteParquet);
    } catch (const Unavailable& error) {
      throw Invalid(kWithoutArrow + std::string(error.what()));
    }
    return found;
  }();
  return library;
}

// Reads a CSV file a byte at a time.
class CsvBytes {
 public:
  explicit CsvBytes(const fs::path& file) : file_(file, "a table") {}
  // Returns -1 at the end.
  int next() {
    if (at_ == end_) {
      at_ = 0;
      end_ = file_.stream().read(std::as_writable_bytes(std::span(bytes_)));
      if (end_ == 0) return -1;
    }
    return static_cast<unsigned char>(bytes_[at_++]);
  }

 private:
  SourceFile file_;
  std::array<char, 65536> bytes_{};
  size_t at_ = 0, end_ = 0;
};

// Returns the character that the first line has most of, outside quotation marks.
char separator_of(const fs::path& file) {
  constexpr std::string_view kSeparators = ",;\t|";
  std::array<uint64_t, kSeparators.size()> counts{};
  CsvBytes bytes(file);
  bool in_quotes = false;
  for (int byte = bytes.next(); byte >= 0 && (in_quotes || byte != '\n'); byte = bytes.next()) {
    if (byte == '"') in_quotes = !in_quotes;
    const size_t which = kSeparators.find(static_cast<char>(byte));
    if (!in_quotes && which != std::string_view::npos) ++counts[which];
  }
  return kSeparators[static_cast<size_t>(std::ranges::max_element(counts) - counts.begin())];
}

// Returns the line, from 1, in which a record begins. Empty lines are no records.
uint64_t line_of_record(const fs::path& file, uint64_t record) {
  CsvBytes bytes(file);
  uint64_t line = 1, begin = 1, records = 0;
  bool in_quotes = false, is_empty = true;
  for (int byte = bytes.next(); byte >= 0; byte = bytes.next()) {
    if (byte == '"') in_quotes = !in_quotes;
    if (byte != '\n') {
      is_empty = is_empty && byte == '\r';
      continue;
    }
    ++line;
    if (in_quotes) continue;
    if (!is_empty && records++ == record) return begin;
    begin = line;
    is_empty = true;
  }
  return begin;
}

std::string without_gz(const fs::path& file) {
  std::string ending = file.extension().string();
  if (ending == ".gz") ending = file.stem().extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

std::string format_by_ending(const fs::path& file) {
  const std::string ending = without_gz(file);
  if (ending == ".csv" || ending == ".tsv" || ending == ".txt") return "csv";
  if (ending == ".parquet") return "parquet";
  if (ending == ".tfrecord" || ending == ".tfrecords") return "tfrecord";
  if (ending == ".npy" || ending == ".npz") return "numpy";
  return ending == ".arrow" || ending == ".feather" ? "arrow" : "";
}

// Returns the file's size and time.
std::string version_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return fmt::format("{} {}", size, fs::last_write_time(file, error).time_since_epoch().count());
}

// Calls `read`, and names the file if a part of it cannot be read.
template <typename Read>
auto named(const fs::path& file, Read read) {
  try {
    return read();
  } catch (const std::runtime_error& error) {
    throw Invalid(file.string() + ": expected a whole file of this format, found: " + error.what());
  }
}

}  // namespace

bool is_table_name(const fs::path& file) {
  return !format_by_ending(file).empty();
}

std::string format_name(const fs::path& file, const spec::TableFormat& format) {
  const std::string name = format.name.empty() ? format_by_ending(file) : format.name;
  if (!name.empty()) return name;
  throw Invalid(
      fmt::format("{}: expected the ending .csv, .tsv, .txt, .parquet, .arrow, .feather, .npy, "
                  ".npz or .tfrecord, or the field "
                  "`format` beside it, found \"{}\"",
                  file.string(), file.extension().string()));
}

TableFile::TableFile(fs::path file, const spec::TableFormat& format,
                     const std::vector<std::string>& texts)
    : path_(std::move(file)), format_(format), texts_(texts), version_(version_of(path_)) {
  tables::ReadOptions options;
  options.format = format_name(path_, format);
  options.decimal = format.decimal;
  options.header = format.header;
  options.texts = texts;
  {
    SourceFile opened(path_, "a table");
    std::byte first{};
    if (opened.stream().read({&first, 1}) == 0)
      throw Invalid(path_.string() + ": expected a table, found an empty file");
  }
  if (options.format == "numpy") {
    table_ = parse_numpy(read_file(path_), path_.string());
    return;
  }
  if (options.format == "csv")
    options.separator = format.separator != 0 ? format.separator : separator_of(path_);
  if (options.format == "tfrecord") {
    table_ = open_examples(path_);
    return;
  }
  tables::ReadError error;
  table_.reset(library().open(path_.c_str(), options, error));
  if (table_ == nullptr)
    throw Invalid((error.row < 0 ? path_.string()
                                 : place_of_row(path_, format, static_cast<uint64_t>(error.row))) +
                  ": " + error.text);
}

bool TableFile::is(const fs::path& file, const spec::TableFormat& format,
                   const std::vector<std::string>& texts) const {
  const auto fields = [](const spec::TableFormat& of) {
    return std::tie(of.name, of.separator, of.decimal, of.header);
  };
  if (file != path_ || fields(format) != fields(format_) || version_of(path_) != version_)
    return false;
  // A column of CSV is text if somebody says so, or if its cells do.
  const auto names = [&](const std::string& name) {
    return std::ranges::find(texts, name) != texts.end();
  };
  return format_name(path_, format_) != "csv" ||
         (std::ranges::all_of(texts_, names) &&
          std::ranges::all_of(columns(), [&](const tables::ColumnInfo& column) {
            return column.kind == tables::CellKind::text || !names(column.name);
          }));
}

uint64_t TableFile::rows() const {
  return std::accumulate(rows_of_blocks().begin(), rows_of_blocks().end(), uint64_t{0});
}

int64_t TableFile::read_numbers(size_t block, size_t column, std::span<double> cells) const {
  return named(path_, [&] { return table_->read_numbers(block, column, cells); });
}

tables::Texts TableFile::read_texts(size_t block, size_t column) const {
  return named(path_, [&] { return table_->read_texts(block, column); });
}

tables::Lists TableFile::read_lists(size_t block, size_t column) const {
  return named(path_, [&] { return table_->read_lists(block, column); });
}

void write_parquet(const fs::path& file, const std::vector<tables::WrittenColumn>& columns) {
  const fs::path whole = file.string() + ".tmp";
  std::error_code error;
  std::string problem = library().write_parquet(whole.c_str(), columns);
  if (problem.empty()) {
    fs::rename(whole, file, error);
    if (error) problem = error.message();
  }
  if (problem.empty()) return;
  fs::remove(whole, error);
  throw Invalid(file.string() + ": cannot be written: " + problem);
}

std::string place_of_row(const fs::path& file, const spec::TableFormat& format, uint64_t row) {
  if (format_name(file, format) != "csv") return fmt::format("{}, row {}", file.string(), row + 1);
  return fmt::format("{}, line {}", file.string(),
                     line_of_record(file, row + (format.header ? 1 : 0)));
}

}  // namespace muster::data
