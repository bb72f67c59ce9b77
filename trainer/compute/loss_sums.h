#pragma once

#include <algorithm>
#include <cstdint>

namespace muster::compute {

// Sums over rows, in float64, in a fixed order. Peers and files say some of them: what is added
// never comes to more than kMostRows.
struct LossSums {
  static constexpr int64_t kMostRows = int64_t{1} << 40;

  double loss = 0;      // sum of per-sample losses
  int64_t correct = 0;  // argmax == label; 0 for regression
  int64_t rows = 0;
  LossSums& operator+=(const LossSums& other) {
    loss += other.loss;
    correct = bounded(correct, other.correct);
    rows = bounded(rows, other.rows);
    return *this;
  }
  // Whether anybody can have come to them.
  bool plausible() const { return 0 <= correct && correct <= rows && rows <= kMostRows; }

 private:
  static int64_t bounded(int64_t a, int64_t b) {
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? kMostRows : std::min(sum, kMostRows);
  }
};

}  // namespace muster::compute
