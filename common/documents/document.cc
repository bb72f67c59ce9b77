#include "common/documents/document.h"

#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "common/documents/document_builder.h"
#include "common/documents/malformed_yaml.h"
#include "common/system/file.h"
#include "common/text/byte_order_mark.h"
#include "common/text/utf8.h"

namespace muster {

namespace {

constexpr size_t kMaxBytes = size_t{4} << 20;
// The limit of open brackets. The parser keeps memory for every open bracket before our code can
// count levels. The limit is above 64 levels, because a block of text may contain what looks like
// open brackets.
constexpr size_t kMaxOpenBrackets = 1000;

// Whether a character is a control character other than tab and line ends.
bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f;
}

void require_text(std::string_view text, const std::string& source, int lines_before) {
  if (text.size() > kMaxBytes) {
    throw Malformed(source, "at most 4 MiB of text", std::to_string(text.size()) + " bytes");
  }
  if (const int line = line_of_excess_bracket(text, kMaxOpenBrackets); line > 0)
    throw Malformed(source + ":" + std::to_string(lines_before + line),
                    "at most 64 levels of nesting", "more");
  if (const auto other = find_other_encoding(text))
    throw Malformed(source + ":" + std::to_string(lines_before + static_cast<int>(other->line)),
                    "UTF-8 text", other->found);
  const auto bad = std::ranges::find_if(text, is_control);
  if (bad == text.end()) return;
  const auto line = lines_before + 1 + std::count(text.begin(), bad, '\n');
  throw Malformed(source + ":" + std::to_string(line), "text without control characters",
                  "the byte " + std::to_string(static_cast<unsigned char>(*bad)) + " at offset " +
                      std::to_string(bad - text.begin()));
}

// Returns the place of a parser's complaint. For a part that is still open at the end of the text
// the parser only names the beginning of the text; then this function returns the end.
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

[[noreturn]] void fail_path(std::string_view path, size_t at, const char* expected) {
  throw Invalid("path '" + std::string(path) + "', character " + std::to_string(at + 1) +
                ": expected " + expected);
}

// Reads `["key"]` or `[12]` at `at`, and moves `at` past it. Returns the step.
std::string bracket_step(std::string_view path, size_t& at) {
  const size_t start = at;
  if (path.substr(at + 1, 1) == "\"") {
    std::string key;
    for (at += 2; at < path.size() && path[at] != '"'; ++at) {
      if (path[at] == '\\' && at + 1 < path.size()) ++at;
      key += path[at];
    }
    if (path.substr(std::min(at, path.size()), 2) != "\"]") fail_path(path, start, "a closing \"]");
    at += 2;
    return key;
  }
  const size_t end = path.find(']', at);
  const std::string_view digits = path.substr(at + 1, end == path.npos ? 0 : end - at - 1);
  const bool number =
      !digits.empty() && digits.size() <= 9 &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number) fail_path(path, start, "an index such as [0]");
  at = end + 1;
  return std::string(path.substr(start, end + 1 - start));
}

// Returns "[12]" as 12. Precondition: split_path made it.
size_t index_of(const std::string& step) {
  size_t index = 0;
  std::from_chars(step.data() + 1, step.data() + step.size() - 1, index);
  return index;
}

bool is_index(const std::string& step) {
  return step.size() > 2 && step.front() == '[' && step.back() == ']';
}

[[noreturn]] void cannot_set(std::string_view path, const std::string& reason) {
  throw Invalid("cannot set " + std::string(path) + ": " + reason);
}

// Returns the member or entry `step` of `value`, and makes it if need be.
Json& descend(Json& value, const std::string& step, std::string_view path) {
  if (is_index(step) && !value.is_object()) {
    const size_t index = index_of(step);
    if (!value.is_array()) cannot_set(path, "expected a list before " + step);
    if (index > value.size()) {
      cannot_set(
          path, "expected an index of at most " + std::to_string(value.size()) + ", found " + step);
    }
    if (index == value.size()) value.push_back(nullptr);
    return value[index];
  }
  if (value.is_null()) value = Json::object();
  if (!value.is_object()) {
    cannot_set(path,
               "expected an object before '" + step + "', found " + std::string(value.type_name()));
  }
  return value[step];
}

}  // namespace

const Document::Lines* Document::Lines::find(std::string_view child) const {
  for (const Lines& candidate : children) {
    if (candidate.key == child) return &candidate;
  }
  return nullptr;
}

Document Document::parse(std::string_view text, std::string source, int lines_before) {
  Document document;
  document.source_ = std::move(source);
  text = without_byte_order_mark(text);
  require_text(text, document.source_, lines_before);
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    Builder builder(document, lines_before);
    while (parser.HandleNextDocument(builder)) {
    }
    builder.require_text_as_keys();
    const YAML::Mark last = builder.last_quoted();
    if (is_unclosed_quote(text, byte_of(text, last)))
      throw Malformed(place_in(document.source_, last, lines_before),
                      "a closing quote of the text that begins here", "the end of the text");
  } catch (const YAML::Exception& error) {
    const YAML::Mark mark = place_of(error, text);
    const auto [expected, found] = in_plain_words(error.msg, text, byte_of(text, mark));
    throw Malformed(place_in(document.source_, mark, lines_before), expected, found);
  }
  return document;
}

Document Document::of(Json value, std::string source) {
  Document document;
  document.value_ = std::move(value);
  document.source_ = std::move(source);
  return document;
}

Document Document::of(Json value, const Document& original, std::vector<Renamed> renamed) {
  Document document = original;
  document.value_ = std::move(value);
  document.renamed_ = std::move(renamed);
  return document;
}

Document Document::part(std::string_view path) const {
  Document document;
  document.source_ = source_;
  document.value_ = *find(path);
  document.lines_ = nearest_lines(path);
  return document;
}

std::string Document::path_in_text(std::string_view path) const {
  const Lines& lines = nearest_lines(path);
  const bool is_set = lines.line == 0 && &lines != &lines_;
  return is_set ? std::string(path) : original_path(path);
}

std::string Document::original_path(std::string_view path) const {
  for (const Renamed& renamed : renamed_) {
    const std::string_view rest = path.substr(std::min(renamed.path.size(), path.size()));
    const bool is_whole_step = rest.empty() || rest.front() == '.' || rest.front() == '[';
    if (path.starts_with(renamed.path) && is_whole_step)
      return renamed.original + std::string(rest);
  }
  return std::string(path);
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
  for (const std::string& step : split_path(original_path(path))) {
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

const Json* Document::find(std::string_view path) const {
  const Json* value = &value_;
  for (const std::string& step : split_path(path)) {
    if (value->is_object()) {
      const auto member = value->find(step);
      if (member == value->end()) return nullptr;
      value = &*member;
    } else if (value->is_array() && is_index(step) && index_of(step) < value->size()) {
      value = &(*value)[index_of(step)];
    } else {
      return nullptr;
    }
  }
  return value;
}

Json* Document::find(std::string_view path) {
  return const_cast<Json*>(static_cast<const Document*>(this)->find(path));
}

void Document::set(std::string_view path, std::string_view text) {
  const std::vector<std::string> steps = split_path(path);
  if (steps.empty()) cannot_set(path, "expected a path such as spec.training.epochs");
  if (steps.size() > 64) cannot_set(path, "expected at most 64 levels of nesting");
  Json replacement;
  try {
    replacement = parse(text, "").value();
  } catch (const Malformed& error) {
    std::string expected = error.expected();
    constexpr std::string_view kOnlyLine = " that begins on line 1";  // the value is no file
    if (const size_t at = expected.find(kOnlyLine); at != expected.npos)
      expected.erase(at, kOnlyLine.size());
    throw Invalid("expected " + expected + ", found " + error.found());
  }
  Json copy = value_;  // so that an error in the middle of a path changes nothing
  Json* target = &copy;
  for (const std::string& step : steps) target = &descend(*target, step, path);
  *target = std::move(replacement);
  value_ = std::move(copy);
  Lines* lines = &lines_;
  for (const std::string& step : split_path(original_path(path))) {
    auto child = std::find_if(lines->children.begin(), lines->children.end(),
                              [&](const Lines& candidate) { return candidate.key == step; });
    if (child == lines->children.end()) {
      lines->children.push_back({step, 0, {}});
      child = std::prev(lines->children.end());
    }
    lines = &*child;
  }
  *lines = {lines->key, 0, {}};
}

std::string child_path(const std::string& path, const std::string& key) {
  if (key.empty() || key.find_first_of(".[]\"=") != std::string::npos) {
    std::string step = path + "[\"";
    for (const char c : key) {
      if (c == '"' || c == '\\') step += '\\';
      step += c;
    }
    return step + "\"]";
  }
  return path.empty() ? key : path + "." + key;
}

std::string child_path(const std::string& path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> steps;
  size_t at = 0;
  while (at < path.size()) {
    if (path[at] == '[') {
      steps.push_back(bracket_step(path, at));
      continue;
    }
    if (!steps.empty()) {
      if (path[at] != '.') fail_path(path, at, "'.' or '['");
      ++at;
    }
    const size_t end = std::min(path.find_first_of(".[", at), path.size());
    if (end == at) fail_path(path, at, "a field's name");
    steps.emplace_back(path.substr(at, end - at));
    at = end;
  }
  return steps;
}

}  // namespace muster
