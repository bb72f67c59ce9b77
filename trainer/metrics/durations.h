#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace muster::metrics {

// A histogram of times in seconds, for Reporter::observe; counting costs almost nothing. Not
// thread-safe.
class Durations {
 public:
  // The upper ends of the buckets, the same for every histogram: the powers of two from 7.6 us to
  // 256 s. A last bucket has all longer times.
  static constexpr auto kBounds = [] {
    std::array<double, 26> bounds{};
    double bound = 256;
    for (auto at = bounds.rbegin(); at != bounds.rend(); ++at, bound /= 2) *at = bound;
    return bounds;
  }();

  void add(double seconds) {
    size_t bucket = 0;
    while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
    ++counts_[bucket];
    sum_ += seconds;
  }
  const std::array<uint64_t, kBounds.size() + 1>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::array<uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

}  // namespace muster::metrics
