#include "trainer/data/images/csv_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "common/error.h"
#include "common/system/input_file.h"
#include "common/text/shorten.h"
#include "common/text/whole_number.h"
#include "common/text/windows_path.h"
#include "trainer/records/csv.h"

namespace muster::data {

namespace {

constexpr uint64_t kMostListBytes = uint64_t{1} << 32;
constexpr int32_t kMostClasses = 65536;

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

class Labels {
 public:
  explicit Labels(const std::vector<std::string>& classes)
      : most_(classes.empty() ? kMostClasses : static_cast<int32_t>(classes.size())),
        named_(!classes.empty()) {
    for (size_t i = 0; i < classes.size(); ++i)
      numbers_.emplace(classes[i], static_cast<int32_t>(i));
  }

  std::optional<int32_t> find(std::string_view label) const {
    const auto found = numbers_.find(label);
    if (found != numbers_.end()) return found->second;
    return whole_number<int32_t>(label, 0, most_ - 1);
  }

  std::string expected() const {
    return fmt::format("{}a number from 0 to {}", named_ ? "one of the classes, or " : "",
                       most_ - 1);
  }

 private:
  int32_t most_;
  bool named_;
  std::map<std::string, int32_t, std::less<>> numbers_;
};

// Returns the text of a row.
std::string text_of(const std::vector<records::CsvField>& row, char separator) {
  std::string text;
  for (const records::CsvField& field : row) {
    if (&field != &row.front()) text += separator;
    text += field.text;
  }
  return text;
}

// Returns the path of a row. A path without quotation marks may contain separators: the last
// separator comes before the label. Empty: the row is not `path,label`.
std::string path_of(const std::vector<records::CsvField>& row, char separator) {
  if (row.size() < 2) return "";
  const auto path = std::span(row).first(row.size() - 1);
  if (path[0].quoted) return path.size() == 1 ? path[0].text : "";
  std::string text = path[0].text;
  for (const records::CsvField& field : path.subspan(1)) {
    if (field.quoted) return "";
    text += separator + field.text;
  }
  return std::string(trimmed(text));
}

}  // namespace

ImageList parse_csv_list(std::string_view text, const spec::ImageCsvSource& source,
                         const std::string& name) {
  const std::filesystem::path folder =
      source.folder.empty() ? source.file.parent_path() : source.folder;
  const Labels labels(source.classes);
  ImageList list{source.classes, static_cast<int64_t>(source.classes.size()), {}, {}};
  records::CsvReader reader(text, name);
  std::vector<records::CsvField> row;
  const auto fail = [&](const records::CsvField& field, const std::string& expected,
                        const std::string& found) {
    throw Invalid(fmt::format("{}: line {}, column {}: expected {}, found \"{}\"", name, field.line,
                              field.column, expected, shorten(found, 80)));
  };
  for (bool is_first = true; reader.next(row); is_first = false) {
    const std::string path = path_of(row, reader.separator());
    const std::string word =
        row.back().quoted ? row.back().text : std::string(trimmed(row.back().text));
    const std::optional<int32_t> label = labels.find(word);
    const bool is_header =
        is_first && !path.empty() && !label && std::filesystem::path(path).extension().empty();
    if (is_header) continue;
    if (path.empty()) fail(row.front(), "path,label", text_of(row, reader.separator()));
    if (is_windows_path(path))
      fail(row.front(), "a path on this system, and no drive of Windows", path);
    if (!label) fail(row.back(), labels.expected() + " as label", word);
    if (source.classes.empty())
      list.label_count = std::max<int64_t>(list.label_count, int64_t{*label} + 1);
    list.files.push_back({folder / path, *label});
  }
  if (list.files.empty()) {
    throw Invalid(fmt::format("{}: expected lines path,label, found none", name));
  }
  return list;
}

ImageList read_csv_list(const spec::ImageCsvSource& source) {
  return parse_csv_list(InputFile(source.file).text(kMostListBytes), source, source.file.string());
}

}  // namespace muster::data
