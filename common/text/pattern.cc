#include "common/text/pattern.h"

#include <re2/re2.h>

#include <algorithm>

#include "common/error.h"

namespace muster {

std::string Pattern::flaw(const std::string& text) {
  return re2::RE2(text, re2::RE2::Quiet).error();
}

Pattern::Pattern(const std::string& text)
    : expression_(std::make_shared<const re2::RE2>(text, re2::RE2::Quiet)) {
  if (expression_->ok()) return;
  throw Invalid("expected a regular expression, found \"" + text + "\": " + expression_->error());
}

bool Pattern::matches(std::string_view text) const {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *expression_);
}

bool Pattern::replace(std::string& text, const std::string& to) const {
  return re2::RE2::Replace(&text, *expression_, to);
}

std::string Pattern::flaw_of(const std::string& to) const {
  std::string flaw;
  return expression_->CheckRewriteString(to, &flaw) ? "" : flaw;
}

Patterns::Patterns(const std::vector<std::string>& texts) : patterns_(texts.begin(), texts.end()) {}

bool Patterns::match(std::string_view text) const {
  return std::ranges::any_of(patterns_, [&](const Pattern& one) { return one.matches(text); });
}

Renames::Renames(const std::vector<Rename>& steps) {
  for (const Rename& step : steps) {
    const auto& [pattern, to] = steps_.emplace_back(Pattern(step.from), step.to);
    if (const std::string flaw = pattern.flaw_of(to); !flaw.empty())
      throw Invalid("expected a replacement for \"" + step.from + "\", found \"" + to +
                    "\": " + flaw);
  }
}

std::string Renames::apply(std::string name) const {
  for (const auto& [pattern, to] : steps_) pattern.replace(name, to);
  return name;
}

}  // namespace muster
