#include "trainer/detection/argmax_matcher.h"

#include <algorithm>
#include <limits>

namespace muster::detection {

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
  for (size_t column = 0; column < largest_.size(); ++column) {
    const bool larger = values[column] > largest[column];
    largest[column] = larger ? values[column] : largest[column];
    rows[column] = larger ? row : rows[column];
  }
  if (!claims) return;
  float most = 0;
  size_t best = 0;
  for (size_t column = 0; column < largest_.size(); ++column) {
    if (values[column] > most) {
      most = values[column];
      best = column;
    }
  }
  if (most > 0 && claimed_by_[best] == kUnmatched) claimed_by_[best] = row;
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
