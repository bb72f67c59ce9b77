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

// Whether a detection matches an object: one bit for each threshold.
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
// takes the free object with the largest IoU, the last of equals. It takes an ignored object (also
// ignored because of its area) only if there is no other. Crowds may be taken several times.
class CocoMatcher {
 public:
  // Precondition: `detections` are sorted by falling score.
  CocoMatcher(std::span<const CocoDetection> detections, std::span<const CocoObject> objects);

  // Writes the match of each detection. Returns the number of objects that are not ignored.
  int64_t match(const CocoAreas& areas, std::span<CocoMatch> matches) const;

 private:
  std::span<const CocoDetection> detections_;
  std::span<const CocoObject> objects_;
  std::vector<double> overlaps_;  // [detections, objects]
};

}  // namespace muster::detection
