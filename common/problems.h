#pragma once

#include <string>
#include <vector>

#include "common/problem.h"

namespace muster {

// The problems of one document, as one check after another finds them. One mistake shall be one
// problem: a check that reads what has a problem already could only report what follows from that,
// and asks first.
class Problems {
 public:
  explicit Problems(const Document& document) : document_(document) {}

  void report(const std::string& path, std::string expected, std::string found,
              std::string hint = "");
  void add(std::vector<Problem> problems);

  // Whether the value at `path`, or that there is none, can be taken as meant: nothing at or above
  // it has a problem, nor is there an unknown field that was probably meant as one of these.
  bool is_sound(const std::string& path) const;
  // is_sound, and nothing within it has a problem either.
  bool is_whole(const std::string& path) const;

  bool empty() const { return problems_.empty(); }

  // By line; those without one last.
  std::vector<Problem> sorted() const;

 private:
  const Document& document_;
  std::vector<Problem> problems_;
};

}  // namespace muster
