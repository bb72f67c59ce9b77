#pragma once

#include <string>
#include <vector>

#include "common/documents/problem.h"

namespace muster {

// The problems of one document, collected from one check after another. One mistake should be
// reported as one problem. A check that reads a value with a problem would only report consequences
// of that problem, so the check first calls is_sound() or is_whole().
class Problems {
 public:
  explicit Problems(const Document& document) : document_(document) {}

  void report(const std::string& path, std::string expected, std::string found,
              std::string hint = "");
  void add(std::vector<Problem> problems);

  // Whether the value at `path`, or its absence, is probably what the user meant: nothing at or
  // above `path` has a problem, and no unknown field was probably meant as one of these paths.
  bool is_sound(const std::string& path) const;
  // Whether is_sound(), and nothing within the value has a problem either.
  bool is_whole(const std::string& path) const;

  bool empty() const { return problems_.empty(); }

  // Returns the problems sorted by line; those without a line come last.
  std::vector<Problem> sorted() const;

 private:
  const Document& document_;
  std::vector<Problem> problems_;
};

}  // namespace muster
