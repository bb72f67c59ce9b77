#pragma once

#include <algorithm>
#include <chrono>

namespace muster::group {

// The waiting times between attempts: they double from `first` to `most`.
class Backoff {
 public:
  explicit Backoff(std::chrono::milliseconds first = std::chrono::milliseconds(50),
                   std::chrono::milliseconds most = std::chrono::milliseconds(1000))
      : first_(first), most_(most), next_(first) {}
  std::chrono::milliseconds next() {
    const auto wait = next_;
    next_ = std::min(most_, next_ * 2);
    return wait;
  }
  void reset() { next_ = first_; }

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds most_;
  std::chrono::milliseconds next_;
};

}  // namespace muster::group
