#include "trainer/supervise/last_line.h"

#include <utility>

namespace muster::supervise {

void LastLine::add(std::string_view piece) {
  for (const char c : piece) {
    const bool is_space = c == ' ' || c == '\t' || c == '\r';
    if (c == '\n') {
      if (!current_.empty()) last_ = std::exchange(current_, {});
    } else if (current_.size() < kMost && !(is_space && current_.empty())) {
      current_ += c;
    }
  }
}

}  // namespace muster::supervise
