#include "trainer/detection/coco_match.h"

#include <algorithm>

namespace muster::detection {

namespace {

constexpr size_t kNone = ~size_t{0};

// Returns the IoU of a detection and an object; for a crowd, the share of the detection that lies
// within it.
double overlap(const CocoBox& found, const CocoBox& object, bool crowd) {
  const double width =
      std::min(found.x + found.width, object.x + object.width) - std::max(found.x, object.x);
  const double height =
      std::min(found.y + found.height, object.y + object.height) - std::max(found.y, object.y);
  if (!(width > 0 && height > 0)) return 0;
  const double both = width * height;
  const double found_area = found.width * found.height;
  const double all = crowd ? found_area : found_area + object.width * object.height - both;
  const double ratio = both / all;
  return ratio > 0 ? ratio : 0;
}

bool outside(double area, const CocoAreas& areas) {
  return area < areas.least || area > areas.most;
}

}  // namespace

std::array<double, kCocoThresholds> coco_thresholds() {
  std::array<double, kCocoThresholds> thresholds{};
  const double step = (0.95 - 0.5) / (kCocoThresholds - 1);
  for (size_t i = 0; i < kCocoThresholds; ++i) thresholds[i] = static_cast<double>(i) * step + 0.5;
  thresholds.back() = 0.95;
  return thresholds;
}

CocoMatcher::CocoMatcher(std::span<const CocoDetection> detections,
                         std::span<const CocoObject> objects)
    : detections_(detections), objects_(objects) {
  for (const CocoDetection& detection : detections)
    for (const CocoObject& object : objects)
      overlaps_.push_back(overlap(detection.box, object.box, object.crowd));
}

int64_t CocoMatcher::match(const CocoAreas& areas, std::span<CocoMatch> matches) const {
  auto ignored = [&](size_t object) {
    return objects_[object].crowd || objects_[object].ignore ||
           outside(objects_[object].area, areas);
  };
  // The objects to be ignored come last.
  std::vector<size_t> order;
  for (size_t i = 0; i < objects_.size(); ++i)
    if (!ignored(i)) order.push_back(i);
  const size_t counted = order.size();
  for (size_t i = 0; i < objects_.size(); ++i)
    if (ignored(i)) order.push_back(i);

  const auto thresholds = coco_thresholds();
  std::vector<bool> taken(objects_.size());
  std::ranges::fill(matches, CocoMatch{});
  for (size_t threshold = 0; threshold < thresholds.size(); ++threshold) {
    const auto bit = static_cast<uint16_t>(1u << threshold);
    taken.assign(objects_.size(), false);
    for (size_t found = 0; found < detections_.size(); ++found) {
      size_t best = kNone;
      double most = thresholds[threshold];
      for (size_t i = 0; i < order.size(); ++i) {
        if (i == counted && best != kNone) break;
        const double ratio = overlaps_[found * objects_.size() + order[i]];
        if (ratio < most || (taken[order[i]] && !objects_[order[i]].crowd)) continue;
        most = ratio;
        best = i;
      }
      const bool none = best == kNone;
      if (!none) {
        taken[order[best]] = true;
        matches[found].matched |= bit;
      }
      const CocoBox& box = detections_[found].box;
      if (none ? outside(box.width * box.height, areas) : best >= counted) {
        matches[found].ignored |= bit;
      }
    }
  }
  return static_cast<int64_t>(counted);
}

}  // namespace muster::detection
