#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace muster::compute {

// The sums of the loss over some rows, in float64 and in a fixed order. Some of them come from
// peers and files, so a count that is added up is limited to kMostRows.
struct LossSums {
  static constexpr int64_t kMostRows = int64_t{1} << 40;
  static constexpr size_t kMostTerms = 5;

  double loss = 0;
  // The number by which the loss and the gradients are divided: the number of rows, unless the kind
  // of loss defines another weight.
  double weight = 0;
  int64_t rows = 0;
  // The further sums of the loss, in the order of its terms in loss.cc.
  std::array<double, kMostTerms> terms{};

  LossSums& operator+=(const LossSums& other) {
    loss += other.loss;
    weight = std::min(weight + other.weight, static_cast<double>(kMostRows));
    rows = bounded(rows, other.rows);
    for (size_t i = 0; i < kMostTerms; ++i) terms[i] += other.terms[i];
    return *this;
  }
  bool operator==(const LossSums&) const = default;
  // Whether real rows can have these counts; used to check the sums of peers.
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
