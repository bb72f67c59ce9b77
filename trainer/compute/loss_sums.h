#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace muster::compute {

// What the loss of some rows comes to: sums in float64, in a fixed order. Peers and files say some
// of them: a count that is added up never comes to more than kMostRows.
struct LossSums {
  static constexpr int64_t kMostRows = int64_t{1} << 40;
  static constexpr size_t kMostTerms = 5;

  double loss = 0;
  // What the loss and the gradients are divided by: as many as there are rows, or as a loss of its
  // own kind says.
  double weight = 0;
  int64_t rows = 0;
  // The loss's further sums, as loss.cc names them.
  std::array<double, kMostTerms> terms{};

  LossSums& operator+=(const LossSums& other) {
    loss += other.loss;
    weight = std::min(weight + other.weight, static_cast<double>(kMostRows));
    rows = bounded(rows, other.rows);
    for (size_t i = 0; i < kMostTerms; ++i) terms[i] += other.terms[i];
    return *this;
  }
  bool operator==(const LossSums&) const = default;
  // Whether anybody can have come to them.
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
