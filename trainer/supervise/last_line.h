#pragma once

#include <string>
#include <string_view>

namespace muster::supervise {

// The last line that is not blank of a text that comes in pieces; of a long one its beginning.
class LastLine {
 public:
  static constexpr size_t kMost = 4096;

  void add(std::string_view piece);
  // Of what has come so far; a line need not be at its end.
  const std::string& text() const { return current_.empty() ? last_ : current_; }

 private:
  std::string current_;  // without the white space that it begins with
  std::string last_;
};

}  // namespace muster::supervise
