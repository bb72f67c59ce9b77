#include "trainer/detection/argmax_matcher.h"

#include <algorithm>
#include <array>
#include <limits>

namespace muster::detection {

namespace {

// Returns the largest value if it is above 0, else 0. Eight maxima side by side let the compiler
// use vectors.
float largest_of(std::span<const float> values) {
  constexpr size_t kLanes = 8;
  std::array<float, kLanes> lanes{};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
  }
  float largest = *std::ranges::max_element(lanes);
  for (; i < values.size(); ++i) largest = std::max(largest, values[i]);
  return largest;
}

}  // namespace

ArgmaxMatcher::ArgmaxMatcher(const MatcherSettings& settings, size_t columns)
    : settings_(settings), largest_(columns), row_(columns), claimed_by_(columns) {
  start();
}

void ArgmaxMatcher::start() {
  rows_ = 0;
  std::ranges::fill(largest_, -std::numeric_limits<float>::infinity());
  std::ranges::fill(row_, 0);
  std::ranges::fill(claimed_by_, kUnmatched);
}

void ArgmaxMatcher::add_row(std::span<const float> similarities, bool claims) {
  const int32_t row = rows_++;
  const float* values = similarities.data();
  float* largest = largest_.data();
  int32_t* rows = row_.data();
  // The compiler could not vectorize one loop for both.
  for (size_t i = 0; i < largest_.size(); ++i) rows[i] = values[i] > largest[i] ? row : rows[i];
  for (size_t i = 0; i < largest_.size(); ++i)
    largest[i] = values[i] > largest[i] ? values[i] : largest[i];
  const float most = largest_of(similarities);
  if (!claims || !(most > 0)) return;
  const auto best = std::ranges::find(similarities, most) - similarities.begin();
  int32_t& claimed_by = claimed_by_[static_cast<size_t>(best)];
  if (claimed_by == kUnmatched) claimed_by = row;
}

void ArgmaxMatcher::finish(std::span<int32_t> matches) const {
  const bool negatives_low = settings_.negatives_lower_than_unmatched;
  for (size_t column = 0; column < largest_.size(); ++column) {
    if (claimed_by_[column] != kUnmatched && settings_.force_match_for_each_row) {
      matches[column] = claimed_by_[column];
    } else if (rows_ == 0) {
      matches[column] = kUnmatched;
    } else if (largest_[column] >= settings_.matched_threshold) {
      matches[column] = row_[column];
    } else {
      const bool low = !(largest_[column] >= settings_.unmatched_threshold);
      matches[column] = low == negatives_low ? kUnmatched : kIgnored;
    }
  }
}

}  // namespace muster::detection
