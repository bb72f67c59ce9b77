#include "trainer/data/images/csv_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "common/error.h"
#include "common/system/input_file.h"
#include "common/text/byte_order_mark.h"
#include "common/text/shorten.h"
#include "common/text/whole_number.h"

namespace muster::data {

namespace {

constexpr uint64_t kMostListBytes = uint64_t{1} << 32;
constexpr int32_t kMostClasses = 65536;

// One line of a list.
struct Fields {
  std::string path;
  std::string_view label;
};

// Splits a line at the comma behind the path; nothing if it is not `path,label`. In quotation
// marks the path may hold commas and, twice, quotation marks; otherwise the last comma counts.
std::optional<Fields> split(std::string_view line) {
  if (!line.starts_with('"')) {
    const size_t comma = line.rfind(',');
    if (comma == std::string_view::npos) return std::nullopt;
    return Fields{std::string(line.substr(0, comma)), line.substr(comma + 1)};
  }
  std::string path;
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '"') {
      ++i;
      if (i < line.size() && line[i] == ',') return Fields{path, line.substr(i + 1)};
      if (i >= line.size() || line[i] != '"') return std::nullopt;
    }
    path.push_back(line[i]);
  }
  return std::nullopt;
}

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

}  // namespace

ImageList parse_csv_list(std::string_view text, const spec::ImageCsvSource& source,
                         const std::string& name) {
  const std::filesystem::path folder =
      source.folder.empty() ? source.file.parent_path() : source.folder;
  const Labels labels(source.classes);
  ImageList list{source.classes, static_cast<int64_t>(source.classes.size()), {}};
  text = without_byte_order_mark(text);
  bool is_first = true;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = trimmed(line);
    if (line.empty()) continue;
    const std::optional<Fields> fields = split(line);
    const bool is_header = is_first && fields && !has_image_ending(fields->path);
    is_first = false;
    if (is_header) continue;
    if (!fields || fields->path.empty()) {
      throw Invalid(fmt::format("{}: line {}: expected path,label, found \"{}\"", name, number,
                                shorten(std::string(line), 80)));
    }
    const std::optional<int32_t> label = labels.find(trimmed(fields->label));
    if (!label) {
      throw Invalid(fmt::format("{}: line {}: expected {} as label, found \"{}\"", name, number,
                                labels.expected(), shorten(std::string(fields->label), 80)));
    }
    if (source.classes.empty())
      list.label_count = std::max<int64_t>(list.label_count, int64_t{*label} + 1);
    list.files.push_back({folder / fields->path, *label});
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
