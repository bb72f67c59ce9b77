#include "common/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_set>

#include "common/file.h"
#include "common/malformed_yaml.h"
#include "common/scalar.h"

namespace muster {

namespace {

constexpr size_t kMaxBytes = size_t{4} << 20;
constexpr size_t kMaxLevels = 64;
constexpr size_t kMaxValues = 100000;
constexpr size_t kMaxKeyBytes = 1024;

std::string position(const YAML::Mark& mark) {
  return std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

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

// Where a parser's complaint stands: of what never ends it names no place but the first.
YAML::Mark place_of(const YAML::Exception& error, std::string_view text) {
  YAML::Mark mark = error.mark;
  const bool is_first = mark.line <= 0 && mark.column <= 0;
  if (!is_first || !error.msg.starts_with("end of ")) return mark;
  const size_t newline = text.rfind('\n');
  mark.line = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  mark.column = static_cast<int>(text.size() - (newline == text.npos ? 0 : newline + 1));
  return mark;
}

// Where in the text a mark stands, as far as its line has bytes.
size_t byte_of(std::string_view text, const YAML::Mark& mark) {
  size_t begin = 0;
  for (int line = mark.line; line > 0 && begin < text.size(); --line) {
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  }
  const size_t end = std::min(text.find('\n', begin), text.size());
  return std::min(begin + static_cast<size_t>(std::max(mark.column, 0)), end);
}

// yaml-cpp turns the escapes \N and \_ into single bytes that are no UTF-8. Control characters are
// welcome here: they were escaped.
bool is_utf8(std::string_view text) {
  for (;;) {
    const size_t bad = find_bad_text(text);
    if (bad == std::string_view::npos) return true;
    if (static_cast<unsigned char>(text[bad]) >= 0x80) return false;
    text.remove_prefix(bad + 1);
  }
}

}  // namespace

// Builds value and lines from yaml-cpp's events. Containers are assembled on an explicit stack and
// moved into their parent when they end.
class Document::Builder : public YAML::EventHandler {
 public:
  explicit Builder(Document& document) : document_(document) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    // yaml-cpp goes on for ever with empty documents at a token it cannot place, such as a leading
    // ','.
    if (++documents_ > 2) fail(mark, "one document", "something else");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (documents_ > 1 && stack_.empty()) return;  // a closing "---"
    add(mark, nullptr, "");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "a value", "an alias (*name), which is not supported");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag, "tag:yaml.org,2002:str");
    if (text.find('\0') != std::string::npos) fail(mark, "text", "an escaped NUL");
    if (!is_utf8(text)) {
      fail(mark, "text", "the escape \\N or \\_; write \\x85 or \\xa0");
    }
    if (tag != "?" || is_key()) return add(mark, text, text);
    add(mark, plain_scalar(text), text);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag, "tag:yaml.org,2002:seq");
    push(mark, Json::array());
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag, "tag:yaml.org,2002:map");
    push(mark, Json::object());
  }
  void OnSequenceEnd() override { pop(); }
  void OnMapEnd() override { pop(); }

 private:
  struct Level {
    Json value;
    Lines lines;
    bool has_key = false;  // of a map: the key has been read, its value comes next
    std::string key;
    int key_line = 0;
    std::unordered_set<std::string> seen;
  };

  [[noreturn]] void fail(const YAML::Mark& mark, std::string expected, std::string found) {
    throw Malformed(document_.source_ + ":" + position(mark), std::move(expected),
                    std::move(found));
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) fail(mark, "a value", "an anchor (&name), which is not supported");
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag, const char* allowed) {
    if (tag.empty() || tag == "?" || tag == "!" || tag == allowed) return;
    fail(mark, "a value", "the tag " + tag.substr(0, 64) + ", which is not supported");
  }

  bool is_key() const {
    return !stack_.empty() && stack_.back().value.is_object() && !stack_.back().has_key;
  }

  void count(const YAML::Mark& mark) {
    if (documents_ > 1) fail(mark, "one document", "a second one after '---'");
    if (++values_ > kMaxValues) fail(mark, "at most 100000 values", "more");
  }

  void push(const YAML::Mark& mark, Json container) {
    count(mark);
    if (is_key()) fail(mark, "a field's name", "a list or an object as a key");
    if (stack_.size() >= kMaxLevels) fail(mark, "at most 64 levels of nesting", "more");
    stack_.emplace_back();
    stack_.back().value = std::move(container);
    stack_.back().lines.line = mark.line + 1;
  }

  void pop() {
    Level level = std::move(stack_.back());
    stack_.pop_back();
    place(std::move(level.value), std::move(level.lines));
  }

  void add(const YAML::Mark& mark, Json value, const std::string& text) {
    count(mark);
    if (!is_key()) {
      Lines lines;
      lines.line = mark.line + 1;
      return place(std::move(value), std::move(lines));
    }
    if (!value.is_string() || text.empty()) fail(mark, "a field's name", "none");
    if (text.size() > kMaxKeyBytes) {
      fail(mark, "a field's name of at most 1024 bytes", std::to_string(text.size()) + " bytes");
    }
    Level& level = stack_.back();
    if (!level.seen.insert(text).second) {
      fail(mark, "each field once", "'" + text + "' again");
    }
    level.has_key = true;
    level.key = text;
    level.key_line = mark.line + 1;
  }

  void place(Json value, Lines lines) {
    if (stack_.empty()) {
      document_.value_ = std::move(value);
      document_.lines_ = std::move(lines);
      return;
    }
    Level& level = stack_.back();
    if (level.value.is_array()) {
      lines.key = child_path("", level.value.size());
      level.value.push_back(std::move(value));
    } else {
      lines.key = level.key;
      lines.line = level.key_line;
      // Not operator[], which searches: keys are known to be new.
      level.value.get_ref<Json::object_t&>().emplace_back(level.key, std::move(value));
      level.has_key = false;
    }
    level.lines.children.push_back(std::move(lines));
  }

  Document& document_;
  std::vector<Level> stack_;
  int documents_ = 0;
  size_t values_ = 0;
};

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
    throw Malformed(document.source_ + ":" + position(mark), expected, found);
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
