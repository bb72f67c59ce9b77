#include "common/document.h"

#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "common/document_builder.h"
#include "common/file.h"
#include "common/malformed_yaml.h"
#include "common/scalar.h"

namespace muster {

namespace {

constexpr size_t kMaxBytes = size_t{4} << 20;

void require_text(std::string_view text, const std::string& source) {
  if (text.size() > kMaxBytes) {
    throw Malformed(source, "at most 4 MiB of text", std::to_string(text.size()) + " bytes");
  }
  const size_t bad = find_bad_text(text);
  if (bad == std::string_view::npos) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(bad), '\n');
  throw Malformed(source + ":" + std::to_string(line), "UTF-8 text",
                  "the byte " + std::to_string(static_cast<unsigned char>(text[bad])) +
                      " at offset " + std::to_string(bad));
}

// Returns the place of a parser's complaint. For something that is still open at the end of the
// text the parser names only the first place; then this returns the end.
YAML::Mark place_of(const YAML::Exception& error, std::string_view text) {
  YAML::Mark mark = error.mark;
  const bool is_first = mark.line <= 0 && mark.column <= 0;
  if (!is_first || !error.msg.starts_with("end of ")) return mark;
  const size_t newline = text.rfind('\n');
  mark.line = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  mark.column = static_cast<int>(text.size() - (newline == text.npos ? 0 : newline + 1));
  return mark;
}

// Returns the offset of a mark in the text, at most the end of the mark's line.
size_t byte_of(std::string_view text, const YAML::Mark& mark) {
  size_t begin = 0;
  for (int line = mark.line; line > 0 && begin < text.size(); --line) {
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  }
  const size_t end = std::min(text.find('\n', begin), text.size());
  return std::min(begin + static_cast<size_t>(std::max(mark.column, 0)), end);
}

}  // namespace

const Document::Lines* Document::Lines::find(std::string_view child) const {
  for (const Lines& candidate : children) {
    if (candidate.key == child) return &candidate;
  }
  return nullptr;
}

Document Document::parse(std::string_view text, std::string source) {
  Document document;
  document.source_ = std::move(source);
  require_text(text, document.source_);
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    Builder builder(document);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    const YAML::Mark mark = place_of(error, text);
    const auto [expected, found] = in_plain_words(error.msg, text, byte_of(text, mark));
    throw Malformed(place_in(document.source_, mark), expected, found);
  }
  return document;
}

Document Document::of(Json value, std::string source) {
  Document document;
  document.value_ = std::move(value);
  document.source_ = std::move(source);
  return document;
}

Document Document::load(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored) &&
      std::filesystem::file_size(path, ignored) > kMaxBytes) {
    throw Malformed(path.string(), "at most 4 MiB of text", "more");
  }
  return parse(read_file(path), path.string());
}

const Document::Lines& Document::nearest_lines(std::string_view path) const {
  const Lines* lines = &lines_;
  for (const std::string& step : split_path(path)) {
    const Lines* child = lines->find(step);
    if (child == nullptr) break;
    lines = child;
    if (lines->line == 0) break;
  }
  return *lines;
}

std::string Document::locate(std::string_view path) const {
  const Lines& lines = nearest_lines(path);
  if (lines.line != 0) return source_ + ":" + std::to_string(lines.line);
  return &lines == &lines_ ? source_ : source_ + " (--set)";
}

int Document::line(std::string_view path) const {
  return nearest_lines(path).line;
}

}  // namespace muster
