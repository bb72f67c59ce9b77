#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace muster::compute {

// The ROC curve of scores by which positive samples are to be told from negative ones. It keeps
// every score: 4 bytes for each, and up to 8 while its memory grows.
class RocCurve {
 public:
  void add(float score, bool positive) { (positive ? positives_ : negatives_).push_back(score); }
  // Returns the area under the curve; nothing without samples of both kinds; NaN with a score that
  // is not a number. It does not depend on the order in which samples were added.
  std::optional<double> area() const;

 private:
  // The order has no meaning: area() sorts them.
  mutable std::vector<float> positives_, negatives_;
};

// The same curve through 200 thresholds from 0 to 1 in equal steps, as Keras's metric AUC has it
// with its defaults. Scores are probabilities.
class ThresholdCurve {
 public:
  static constexpr size_t kThresholds = 200;

  void add(float probability, bool positive);
  std::optional<double> area() const;

 private:
  // How many of the samples are above so many thresholds, by kind: negative, positive.
  std::array<std::array<int64_t, kThresholds + 1>, 2> counts_{};
};

}  // namespace muster::compute
