#include "common/documents/document_builder.h"

#include <yaml-cpp/exceptions.h>

#include <algorithm>
#include <utility>

#include "common/documents/malformed_yaml.h"
#include "common/documents/scalar.h"
#include "common/text/utf8.h"

namespace muster {

namespace {

constexpr size_t kMaxLevels = 64;
constexpr size_t kMaxValues = 100000;
constexpr size_t kMaxKeyBytes = 1024;
constexpr size_t kMaxCopiedBytes = size_t{4} << 20;

struct Size {
  size_t values = 1;  // and keys
  size_t bytes = 0;   // bytes of text
  size_t levels = 0;
};

Size size_of(const Json& value) {
  Size size;
  if (value.is_string()) size.bytes = value.get_ref<const std::string&>().size();
  if (!value.is_structured()) return size;
  for (auto entry = value.begin(); entry != value.end(); ++entry) {
    const Size part = size_of(*entry);
    size.values += part.values;
    size.bytes += part.bytes;
    size.levels = std::max(size.levels, part.levels);
    if (!value.is_object()) continue;
    size.values += 1;
    size.bytes += entry.key().size();
  }
  size.levels += 1;
  return size;
}

}  // namespace

std::string place_in(const std::string& source, const YAML::Mark& mark, int lines_before) {
  return source + ":" + std::to_string(lines_before + mark.line + 1) + ":" +
         std::to_string(mark.column + 1);
}

void Document::Builder::OnDocumentStart(const YAML::Mark& mark) {
  // At a token that it cannot place, for example a leading ',', yaml-cpp returns empty documents
  // for ever.
  if (++documents_ > 2) fail(mark, "one document", "something else");
}

void Document::Builder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  if (documents_ > 1 && stack_.empty()) return;  // a closing "---"
  Part part{nullptr, {"", line_of(mark), {}}};
  keep(mark, anchor, part);
  add(mark, std::move(part));
}

void Document::Builder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) {
    fail(mark, "an alias of a value that ends before it",
         "an alias of the list or object that it stands in");
  }
  count_copy(mark, found->second.value);
  Part part = found->second;
  part.lines.line = line_of(mark);
  add(mark, std::move(part));
}

void Document::Builder::OnScalar(const YAML::Mark& mark, const std::string& tag,
                                 YAML::anchor_t anchor, const std::string& text) {
  refuse_tag(mark, tag, "tag:yaml.org,2002:str");
  if (text.find('\0') != std::string::npos) fail(mark, "text", "an escaped NUL");
  // yaml-cpp turns the escapes \N and \_ into single bytes, which are not UTF-8.
  if (find_bad_utf8(text) != std::string_view::npos) {
    fail(mark, "text", "the escape \\N or \\_; write \\x85 or \\xa0");
  }
  const bool is_plain = tag == "?";
  if (!is_plain) last_quoted_ = mark;
  Part part{is_plain ? typed(mark, text) : Json(text), {"", line_of(mark), {}}};
  keep(mark, anchor, part);
  add(mark, std::move(part), is_plain && text == "<<");
}

// Returns a plain text with its type. A key must be text: kubectl would make "true" of the key
// `on`.
Json Document::Builder::typed(const YAML::Mark& mark, const std::string& text) {
  const char* const quoted = "; put it between quotes where a text is meant";
  Json value;
  try {
    value = plain_scalar(text);
  } catch (const Invalid& error) {
    fail(mark, "a value", error.what() + std::string(quoted));
  }
  if (!is_key() || value.is_string() || value.is_null()) return value;
  if (!no_text_as_key_) {
    const char* kind = value.is_boolean() ? "a boolean" : "a number";
    no_text_as_key_.emplace(place_in(document_.source_, mark, lines_before_), "a field's name",
                            text + ", which is " + kind + " in YAML" + quoted);
  }
  return text;
}

void Document::Builder::require_text_as_keys() const {
  if (no_text_as_key_) throw *no_text_as_key_;
}

void Document::Builder::OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                                        YAML::anchor_t anchor, YAML::EmitterStyle::value) {
  refuse_tag(mark, tag, "tag:yaml.org,2002:seq");
  push(mark, Json::array(), anchor);
}

void Document::Builder::OnMapStart(const YAML::Mark& mark, const std::string& tag,
                                   YAML::anchor_t anchor, YAML::EmitterStyle::value) {
  refuse_tag(mark, tag, "tag:yaml.org,2002:map");
  push(mark, Json::object(), anchor);
}

void Document::Builder::fail(const YAML::Mark& mark, std::string expected, std::string found) {
  throw Malformed(place_in(document_.source_, mark, lines_before_), std::move(expected),
                  std::move(found));
}

void Document::Builder::refuse_tag(const YAML::Mark& mark, const std::string& tag,
                                   const char* allowed) {
  if (tag.empty() || tag == "?" || tag == "!" || tag == allowed) return;
  fail(mark, "a value", "the tag " + tag.substr(0, 64) + ", which is not supported");
}

bool Document::Builder::is_key() const {
  return !stack_.empty() && stack_.back().part.value.is_object() && !stack_.back().has_key;
}

void Document::Builder::count(const YAML::Mark& mark) {
  if (documents_ > 1) fail(mark, "one document", "a second one after '---'");
  if (++values_ > kMaxValues) fail(mark, "at most 100000 values", "more");
}

// A few nested aliases can stand for billions of values, so each copy counts as if it were written
// out.
void Document::Builder::count_copy(const YAML::Mark& mark, const Json& value) {
  const Size size = size_of(value);
  values_ += size.values;
  copied_bytes_ += size.bytes;
  if (values_ > kMaxValues) {
    fail(mark, "at most 100000 values, with all that anchors and aliases stand for", "more");
  }
  if (copied_bytes_ > kMaxCopiedBytes) {
    fail(mark, "at most 4 MiB of text that anchors and aliases stand for", "more");
  }
  if (stack_.size() + size.levels > kMaxLevels) {
    fail(mark, "at most 64 levels of nesting", "more");
  }
}

void Document::Builder::keep(const YAML::Mark& mark, YAML::anchor_t anchor, const Part& part) {
  if (anchor == 0) return;
  count_copy(mark, part.value);
  anchors_[anchor] = part;
}

void Document::Builder::push(const YAML::Mark& mark, Json container, YAML::anchor_t anchor) {
  count(mark);
  if (is_key()) throw YAML::ParserException(mark, std::string(kListAsKey));
  if (stack_.size() >= kMaxLevels) fail(mark, "at most 64 levels of nesting", "more");
  Level& level = stack_.emplace_back();
  level.part = {std::move(container), {"", line_of(mark), {}}};
  level.mark = mark;
  level.anchor = anchor;
}

void Document::Builder::pop() {
  Level level = std::move(stack_.back());
  stack_.pop_back();
  for (Part& field : level.merged) {
    // If several objects bring the same field, the first one wins.
    if (!level.seen.insert(field.lines.key).second) continue;
    level.part.value.get_ref<Json::object_t&>().emplace_back(field.lines.key,
                                                             std::move(field.value));
    level.part.lines.children.push_back(std::move(field.lines));
  }
  keep(level.mark, level.anchor, level.part);
  place(std::move(level.part));
}

void Document::Builder::add(const YAML::Mark& mark, Part part, bool merges) {
  count(mark);
  if (is_key()) return begin_field(mark, part.value, merges);
  place(std::move(part));
}

void Document::Builder::begin_field(const YAML::Mark& mark, const Json& key, bool merges) {
  if (!key.is_string() || key.get_ref<const std::string&>().empty()) {
    fail(mark, "a field's name", key.is_structured() ? "an alias of a list or an object" : "none");
  }
  Level& level = stack_.back();
  level.key = key.get<std::string>();
  if (level.key.size() > kMaxKeyBytes) {
    fail(mark, "a field's name of at most 1024 bytes", std::to_string(level.key.size()) + " bytes");
  }
  if (!level.seen.insert(level.key).second) {
    fail(mark, "each field once",
         "'" + level.key + "' again" + (merges ? "; one << takes a list: [*a, *b]" : ""));
  }
  level.has_key = true;
  level.merges = merges;
  level.key_mark = mark;
}

void Document::Builder::place(Part part) {
  if (stack_.empty()) {
    document_.value_ = std::move(part.value);
    document_.lines_ = std::move(part.lines);
    return;
  }
  Level& level = stack_.back();
  if (level.part.value.is_array()) {
    part.lines.key = child_path("", level.part.value.size());
    level.part.value.push_back(std::move(part.value));
  } else {
    level.has_key = false;
    if (level.merges) return merge(level, std::move(part));
    part.lines.key = level.key;
    part.lines.line = line_of(level.key_mark);
    // This does not use operator[], which searches: the keys are known to be new.
    level.part.value.get_ref<Json::object_t&>().emplace_back(level.key, std::move(part.value));
  }
  level.part.lines.children.push_back(std::move(part.lines));
}

void Document::Builder::merge(Level& level, Part part) {
  if (!part.value.is_array()) return merge_object(level, std::move(part));
  for (size_t i = 0; i < part.value.size(); ++i) {
    merge_object(level, {std::move(part.value[i]), std::move(part.lines.children[i])});
  }
}

void Document::Builder::merge_object(Level& level, Part object) {
  if (!object.value.is_object()) {
    fail(level.key_mark, "an object after <<, or a list of objects",
         object.value.is_array() ? "a list in a list"
                                 : "a " + std::string(object.value.type_name()));
  }
  size_t i = 0;
  for (auto& [key, value] : object.value.get_ref<Json::object_t&>()) {
    // YAML keeps the object's own field, wherever << is; kubectl keeps the later of the two.
    if (level.seen.contains(key)) {
      fail(level.key_mark, "<< before the fields of the object that it also brings",
           "it after '" + key + "'");
    }
    level.merged.push_back({std::move(value), std::move(object.lines.children[i++])});
  }
}

}  // namespace muster
