#include "common/documents/problems.h"

#include <algorithm>
#include <limits>

namespace muster {

namespace {

// Whether `inner` is `outer` or a part of it.
bool holds(const std::string& outer, const std::string& inner) {
  if (!inner.starts_with(outer)) return false;
  return outer.empty() || inner.size() == outer.size() || inner[outer.size()] == '.' ||
         inner[outer.size()] == '[';
}

}  // namespace

void Problems::report(const std::string& path, std::string expected, std::string found,
                      std::string hint) {
  problems_.push_back(
      make_problem(document_, path, std::move(expected), std::move(found), std::move(hint)));
}

void Problems::add(std::vector<Problem> problems) {
  for (Problem& problem : problems) problems_.push_back(std::move(problem));
}

bool Problems::is_sound(const std::string& path) const {
  return std::none_of(problems_.begin(), problems_.end(), [&](const Problem& problem) {
    return holds(problem.path, path) || (!problem.meant.empty() && holds(problem.meant, path));
  });
}

bool Problems::is_whole(const std::string& path) const {
  return is_sound(path) &&
         std::none_of(problems_.begin(), problems_.end(),
                      [&](const Problem& problem) { return holds(path, problem.path); });
}

std::vector<Problem> Problems::sorted() const {
  std::vector<Problem> result = problems_;
  const auto order = [](const Problem& problem) {
    return problem.line > 0 ? problem.line : std::numeric_limits<int>::max();
  };
  std::stable_sort(result.begin(), result.end(),
                   [&](const Problem& a, const Problem& b) { return order(a) < order(b); });
  return result;
}

}  // namespace muster
