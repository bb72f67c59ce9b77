#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::detection {

// ArgmaxMatcher's marks for a column that is not matched with a row.
constexpr int32_t kUnmatched = -1;  // background
constexpr int32_t kIgnored = -2;    // neither background nor matched

// The settings of the TF Object Detection API's argmax_matcher, with its names.
// Preconditions: 0 < matched_threshold, unmatched_threshold <= matched_threshold, and they differ
// if negatives_lower_than_unmatched is false.
struct MatcherSettings {
  float matched_threshold = 0.5f;    // at least as similar: matched
  float unmatched_threshold = 0.5f;  // less similar: unmatched
  // False: columns between the thresholds are unmatched, and those below both are ignored. True:
  // the other way round.
  bool negatives_lower_than_unmatched = true;
  bool force_match_for_each_row = true;

  bool operator==(const MatcherSettings&) const = default;
};

// Matches each column of a matrix of similarities (the anchors) with a row (the ground-truth boxes)
// or with none. A column is matched with the row to which it is most similar (the first of equals),
// if the thresholds allow it. Then, with force_match_for_each_row, each row gets the column that is
// most similar to it (the first of equals), whatever the thresholds say and even if the column was
// matched with another row; if several rows claim a column, the first row gets it. The rows come
// one by one, so the matrix is never in memory. A similarity that is NaN is less than every other.
// Unlike TensorFlow's matcher, which gives column 0 to a row that is similar to no column, this
// matcher forces nothing for such a row.
class ArgmaxMatcher {
 public:
  ArgmaxMatcher(const MatcherSettings& settings, size_t columns);

  // Forgets all rows.
  void start();
  // `similarities` has one value for each column. A row without `claims` is matched only by the
  // thresholds.
  void add_row(std::span<const float> similarities, bool claims);
  // Writes for each column the row that it is matched with, kUnmatched or kIgnored. Without rows
  // all columns are unmatched.
  void finish(std::span<int32_t> matches) const;

 private:
  const MatcherSettings settings_;
  int32_t rows_ = 0;
  // For each column: the largest similarity so far, its row, and the row that claims it.
  std::vector<float> largest_;
  std::vector<int32_t> row_;
  std::vector<int32_t> claimed_by_;
};

}  // namespace muster::detection
