#include "trainer/compute/metrics/roc_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace muster::compute {

std::optional<double> RocCurve::area() const {
  if (positives_.empty() || negatives_.empty()) return std::nullopt;
  for (auto* scores : {&positives_, &negatives_}) {
    if (std::ranges::any_of(*scores, [](float score) { return std::isnan(score); }))
      return std::numeric_limits<double>::quiet_NaN();
    std::ranges::sort(*scores);
  }
  // The negatives below a positive, and half of those that are equal.
  double pairs = 0;
  auto below = negatives_.begin(), not_above = negatives_.begin();
  for (const float score : positives_) {
    while (below != negatives_.end() && *below < score) ++below;
    not_above = std::max(not_above, below);
    while (not_above != negatives_.end() && *not_above <= score) ++not_above;
    pairs +=
        0.5 * static_cast<double>((below - negatives_.begin()) + (not_above - negatives_.begin()));
  }
  return pairs / static_cast<double>(positives_.size()) / static_cast<double>(negatives_.size());
}

// The thresholds are below 0, then 1 / 199, 2 / 199 and so on, then above 1.
void ThresholdCurve::add(float probability, bool positive) {
  const double above = std::ceil(static_cast<double>(probability) * double{kThresholds - 1});
  const auto count = above >= 1 ? std::min(static_cast<size_t>(above), kThresholds - 1) : size_t{1};
  ++counts_[positive ? 1 : 0][count];
}

std::optional<double> ThresholdCurve::area() const {
  std::array<double, 2> all{};
  for (size_t kind = 0; kind < 2; ++kind)
    all[kind] = static_cast<double>(
        std::accumulate(counts_[kind].begin(), counts_[kind].end(), int64_t{0}));
  if (all[0] == 0 || all[1] == 0) return std::nullopt;
  // From the highest threshold, which no sample is above, to the lowest.
  double area = 0;
  std::array<double, 2> share{};
  for (size_t threshold = kThresholds; threshold-- > 0;) {
    std::array<double, 2> next = share;
    for (size_t kind = 0; kind < 2; ++kind)
      next[kind] += static_cast<double>(counts_[kind][threshold + 1]) / all[kind];
    area += (next[0] - share[0]) * (next[1] + share[1]) / 2;
    share = next;
  }
  return area;
}

}  // namespace muster::compute
