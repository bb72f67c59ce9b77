#include "trainer/detection/coco_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "common/error.h"
#include "trainer/detection/coco_match.h"

namespace muster::detection {

namespace {

enum AreaRange : size_t { kAll, kSmall, kMedium, kLarge };
constexpr std::array<CocoAreas, 4> kRanges = {
    CocoAreas{0, 1e10}, {0, kMostSmall}, {kMostSmall, kMostMedium}, {kMostMedium, 1e10}};
constexpr int32_t kMostDetections = 100;  // most detections of a class in an image
constexpr int kRecalls = 101;

// A key by which higher scores come first, and NaN last.
std::pair<bool, double> falling(double score) {
  return std::isnan(score) ? std::pair(true, 0.0) : std::pair(false, -score);
}

// Returns the items with this label from items sorted by label.
template <typename T>
std::span<const T> of_label(const std::vector<T>& things, int32_t label) {
  const auto first = std::ranges::lower_bound(things, label, {}, &T::label);
  const auto last = std::ranges::upper_bound(things, label, {}, &T::label);
  return {first, last};
}

// A mean over the added values; -1 if there are none.
struct Mean {
  double sum = 0;
  int64_t count = 0;

  void add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return count > 0 ? sum / static_cast<double>(count) : -1; }
};

}  // namespace

// The results of the detections of a class at one IoU threshold.
struct CocoEvaluation::Curve {
  double average_precision = 0;
  double recall = 0;
};

CocoEvaluation::CocoEvaluation(std::vector<int32_t> labels)
    : labels_(std::move(labels)), classes_(labels_.size()) {
  std::vector<int32_t> sorted = labels_;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) {
    throw Invalid(fmt::format(
        "COCO evaluation: each label must be there once, but {} is there twice", *twice));
  }
}

void CocoEvaluation::add(int64_t image, std::span<const CocoDetection> detections,
                         std::span<const CocoObject> objects) {
  if (!images_.insert(image).second) {
    throw Invalid(fmt::format(
        "COCO evaluation: each image must be added once, but {} was added before", image));
  }
  std::vector<CocoDetection> found(detections.begin(), detections.end());
  std::ranges::stable_sort(found, {}, [](const CocoDetection& detection) {
    return std::pair(detection.label, falling(detection.score));
  });
  std::vector<CocoObject> wanted(objects.begin(), objects.end());
  std::ranges::stable_sort(wanted, {}, &CocoObject::label);
  for (size_t i = 0; i < labels_.size(); ++i) {
    const auto best = of_label(found, labels_[i]);
    const auto to_find = of_label(wanted, labels_[i]);
    if (best.empty() && to_find.empty()) continue;
    add_class(classes_[i], image, best.first(std::min<size_t>(best.size(), kMostDetections)),
              to_find);
  }
}

void CocoEvaluation::add_class(PerClass& to, int64_t image,
                               std::span<const CocoDetection> detections,
                               std::span<const CocoObject> objects) {
  const size_t first = to.detections.size();
  for (const CocoDetection& detection : detections) {
    Ranked ranked;
    ranked.score = detection.score;
    ranked.image = image;
    ranked.rank = static_cast<int32_t>(to.detections.size() - first);
    to.detections.push_back(ranked);
  }
  const CocoMatcher matcher(detections, objects);
  std::vector<CocoMatch> matches(detections.size());
  for (size_t area = 0; area < kAreas; ++area) {
    to.objects[area] += matcher.match(kRanges[area], matches);
    for (size_t i = 0; i < matches.size(); ++i) {
      to.detections[first + i].matched[area] = matches[i].matched;
      to.detections[first + i].ignored[area] = matches[i].ignored;
    }
  }
}

// `ranked` are by falling score; only the best `detections` of each image count.
CocoEvaluation::Curve CocoEvaluation::curve(std::span<const Ranked> ranked, int64_t objects,
                                            size_t area, int32_t detections, size_t threshold) {
  std::vector<double> precisions;  // when the first, second, third, ... object is found
  int64_t wrong = 0;
  for (const Ranked& detection : ranked) {
    if (detection.rank >= detections || (detection.ignored[area] >> threshold & 1) != 0) continue;
    if ((detection.matched[area] >> threshold & 1) == 0) {
      ++wrong;
      continue;
    }
    const auto right = static_cast<double>(precisions.size() + 1);
    precisions.push_back(
        right / (static_cast<double>(wrong) + right + std::numeric_limits<double>::epsilon()));
  }
  for (size_t i = precisions.size(); i-- > 1;)
    precisions[i - 1] = std::max(precisions[i - 1], precisions[i]);
  Curve curve;
  const auto all = static_cast<double>(objects);
  curve.recall = static_cast<double>(precisions.size()) / all;
  size_t at = 0;
  for (int i = 0; i < kRecalls; ++i) {
    const double recall = i == kRecalls - 1 ? 1 : i * 0.01;
    while (at < precisions.size() && static_cast<double>(at + 1) / all < recall) ++at;
    if (at == precisions.size()) break;
    curve.average_precision += precisions[at];
  }
  curve.average_precision /= kRecalls;
  return curve;
}

CocoMetrics CocoEvaluation::metrics() const {
  std::array<Mean, kAreas> precision, recall;
  Mean precision50, precision75, recall1, recall10;
  CocoMetrics metrics;
  for (const PerClass& one : classes_) {
    std::vector<Ranked> ranked = one.detections;
    std::ranges::sort(ranked, {}, [](const Ranked& detection) {
      return std::tuple(falling(detection.score), detection.image, detection.rank);
    });
    Mean of_class;
    for (size_t area = 0; area < kAreas; ++area) {
      const int64_t objects = one.objects[area];
      for (size_t threshold = 0; threshold < kCocoThresholds && objects > 0; ++threshold) {
        const Curve best = curve(ranked, objects, area, kMostDetections, threshold);
        precision[area].add(best.average_precision);
        recall[area].add(best.recall);
        if (area != kAll) continue;
        of_class.add(best.average_precision);
        if (threshold == 0) precision50.add(best.average_precision);
        if (threshold == 5) precision75.add(best.average_precision);
        recall1.add(curve(ranked, objects, area, 1, threshold).recall);
        recall10.add(curve(ranked, objects, area, 10, threshold).recall);
      }
    }
    metrics.class_ap.push_back(of_class.value());
  }
  metrics.ap = precision[kAll].value();
  metrics.ap50 = precision50.value();
  metrics.ap75 = precision75.value();
  metrics.ap_small = precision[kSmall].value();
  metrics.ap_medium = precision[kMedium].value();
  metrics.ap_large = precision[kLarge].value();
  metrics.ar1 = recall1.value();
  metrics.ar10 = recall10.value();
  metrics.ar100 = recall[kAll].value();
  metrics.ar_small = recall[kSmall].value();
  metrics.ar_medium = recall[kMedium].value();
  metrics.ar_large = recall[kLarge].value();
  return metrics;
}

}  // namespace muster::detection
