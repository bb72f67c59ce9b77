#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace muster {

// A regular expression of a manifest, in RE2's syntax (https://github.com/google/re2/wiki/Syntax),
// as the function `matches` of Kubernetes' rules takes it. It matches a text if it matches any part
// of the text; ^ and $ tie it to the ends. Matching takes time in proportion to the text's length.
class Pattern {
 public:
  // Returns what is wrong with the expression `text`; "" if it is valid.
  static std::string flaw(const std::string& text);
  // Throws Invalid if the expression is not valid.
  explicit Pattern(const std::string& text);

  bool matches(std::string_view text) const;
  // Replaces the first match in `text` by `to`, in which \1 stands for the match of the first
  // group. Returns false, and leaves `text` unchanged, if nothing matches. Precondition:
  // flaw_of(to) is "".
  bool replace(std::string& text, const std::string& to) const;
  // Returns what is wrong with the replacement `to`; "" if it is valid.
  std::string flaw_of(const std::string& to) const;

 private:
  std::shared_ptr<const re2::RE2> expression_;
};

// Several patterns; a text matches if one of them matches it.
class Patterns {
 public:
  Patterns() = default;
  // Throws Invalid as Pattern does.
  explicit Patterns(const std::vector<std::string>& texts);
  bool empty() const { return patterns_.empty(); }
  bool match(std::string_view text) const;

 private:
  std::vector<Pattern> patterns_;
};

// One step in changing a name: `to` replaces the match of the pattern `from`.
struct Rename {
  std::string from;
  std::string to;
  bool operator==(const Rename&) const = default;
};

// Changes names in several steps; each step works on the result of the step before.
class Renames {
 public:
  // Throws Invalid for an invalid pattern or replacement.
  explicit Renames(const std::vector<Rename>& steps);
  std::string apply(std::string name) const;

 private:
  std::vector<std::pair<Pattern, std::string>> steps_;
};

}  // namespace muster
