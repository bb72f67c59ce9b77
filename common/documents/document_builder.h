#pragma once

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/documents/document.h"

namespace muster {

// Returns the place as text, for example "job.yaml:3:7". `lines_before` is the number of lines in
// the source before the text that the mark belongs to.
std::string place_in(const std::string& source, const YAML::Mark& mark, int lines_before);

// Builds a document's value and lines from yaml-cpp's events. Containers are assembled on an
// explicit stack and moved into their parent when they end. An alias is a copy of its anchor's
// value and keeps the lines of the anchor's value. Throws Malformed.
class Document::Builder : public YAML::EventHandler {
 public:
  Builder(Document& document, int lines_before)
      : document_(document), lines_before_(lines_before) {}

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override;
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override;
  void OnSequenceEnd() override { pop(); }
  void OnMapEnd() override { pop(); }

  // Throws Malformed if a key is not text. Call this at the end of the document: before it, the
  // parser may have taken the last entry of an unclosed list for a key.
  void require_text_as_keys() const;

  // Returns where the last text began that is not plain, for example a text in quotes.
  YAML::Mark last_quoted() const { return last_quoted_; }

 private:
  struct Part {
    Json value;
    Lines lines;
  };

  struct Level {
    Part part;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    // The members below are used only for an object.
    bool has_key = false;  // the key has been read, its value comes next
    bool merges = false;   // the key is <<
    std::string key;
    YAML::Mark key_mark;
    std::unordered_set<std::string> seen;
    std::vector<Part> merged;  // the parts from <<; the object's own fields take precedence
  };

  [[noreturn]] void fail(const YAML::Mark& mark, std::string expected, std::string found);
  void refuse_tag(const YAML::Mark& mark, const std::string& tag, const char* allowed);
  Json typed(const YAML::Mark& mark, const std::string& text);
  bool is_key() const;
  void count(const YAML::Mark& mark);
  void count_copy(const YAML::Mark& mark, const Json& value);
  void keep(const YAML::Mark& mark, YAML::anchor_t anchor, const Part& part);
  void push(const YAML::Mark& mark, Json container, YAML::anchor_t anchor);
  void pop();
  void add(const YAML::Mark& mark, Part part, bool merges = false);
  void begin_field(const YAML::Mark& mark, const Json& key, bool merges);
  void place(Part part);
  void merge(Level& level, Part part);
  void merge_object(Level& level, Part object);

  int line_of(const YAML::Mark& mark) const { return lines_before_ + mark.line + 1; }

  Document& document_;
  const int lines_before_;
  std::vector<Level> stack_;
  std::map<YAML::anchor_t, Part> anchors_;
  std::optional<Malformed> no_text_as_key_;
  YAML::Mark last_quoted_ = YAML::Mark::null_mark();
  int documents_ = 0;
  size_t values_ = 0;
  size_t copied_bytes_ = 0;
};

}  // namespace muster
