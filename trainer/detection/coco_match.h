#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/detection/coco_evaluation.h"

namespace muster::detection {

constexpr size_t kCocoThresholds = 10;

// Returns the IoU thresholds 0.5, 0.55, ..., 0.95, with the rounding of pycocotools.
std::array<double, kCocoThresholds> coco_thresholds();

// Whether detections match objects, by bits for each threshold.
struct CocoMatch {
  uint16_t matched = 0;
  uint16_t ignored = 0;  // the detection neither helps nor harms
};

// Areas in pixels, both included.
struct CocoAreas {
  double least;
  double most;
};

// Matches the detections of a class in an image with its objects. At each threshold, a detection
// takes the object of the largest IoU of those that nobody has taken yet, the last of equals; one
// that is to be ignored (also for its area) only if there is no other; crowds may be taken often.
class CocoMatcher {
 public:
  // `detections` are by falling score.
  CocoMatcher(std::span<const CocoDetection> detections, std::span<const CocoObject> objects);

  // Writes the match of each detection. Returns how many objects are not to be ignored.
  int64_t match(const CocoAreas& areas, std::span<CocoMatch> matches) const;

 private:
  std::span<const CocoDetection> detections_;
  std::span<const CocoObject> objects_;
  std::vector<double> overlaps_;  // [detections, objects]
};

}  // namespace muster::detection
