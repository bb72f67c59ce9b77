#pragma once

#include <cstdint>

namespace muster::compute {

// Sums over rows, in float64, in a fixed order.
struct LossSums {
  double loss = 0;      // sum of per-sample losses
  int64_t correct = 0;  // argmax == label; 0 for regression
  int64_t rows = 0;
  LossSums& operator+=(const LossSums& other) {
    loss += other.loss;
    correct += other.correct;
    rows += other.rows;
    return *this;
  }
};

}  // namespace muster::compute
