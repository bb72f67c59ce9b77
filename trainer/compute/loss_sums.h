#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace muster::compute {

// The sums of the loss over some rows, in float64 and in a fixed order. Sums can come from peers
// and files, so each added count is limited to kMostRows.
struct LossSums {
  static constexpr int64_t kMostRows = int64_t{1} << 40;
  static constexpr size_t kMostTerms = 5;

  double loss = 0;
  // The number by which the loss and the gradients are divided: the number of rows, unless the kind
  // of loss defines another weight.
  double weight = 0;
  int64_t rows = 0;
  // The sums of the loss's terms, in the order of the terms in loss.cc.
  std::array<double, kMostTerms> terms{};

  LossSums& operator+=(const LossSums& other) {
    loss += other.loss;
    weight = std::min(weight + other.weight, static_cast<double>(kMostRows));
    rows = bounded(rows, other.rows);
    for (size_t i = 0; i < kMostTerms; ++i) terms[i] += other.terms[i];
    return *this;
  }
  bool operator==(const LossSums&) const = default;
  // Returns whether real rows can give these counts. Used to check sums from peers.
  bool plausible() const {
    return 0 <= rows && rows <= kMostRows && weight >= 0 &&
           weight <= static_cast<double>(kMostRows);
  }

 private:
  static int64_t bounded(int64_t a, int64_t b) {
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? kMostRows : std::min(sum, kMostRows);
  }
};
static_assert(std::is_trivially_copyable_v<LossSums>);  // processes share it in memory

}  // namespace muster::compute
