#pragma once

#include <string>
#include <string_view>

namespace muster::supervise {

// The last line that is not blank of a text that comes in pieces; at most its first kMost bytes.
class LastLine {
 public:
  static constexpr size_t kMost = 4096;

  void add(std::string_view piece);
  // Returns the last line of the text so far; the line need not be complete.
  const std::string& text() const { return current_.empty() ? last_ : current_; }

 private:
  std::string current_;  // without leading white space
  std::string last_;
};

}  // namespace muster::supervise
