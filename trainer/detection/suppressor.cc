#include "trainer/detection/suppressor.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace muster::detection {

namespace {

// Returns a number that is larger for a higher score and, where scores are equal, for a lower
// index.
uint64_t rank_of(float score, size_t index) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 becomes 0
  const uint32_t rising = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{rising} << 32 | ~static_cast<uint32_t>(index);
}

size_t index_of(uint64_t rank) {
  return ~static_cast<uint32_t>(rank);
}

float overlap(const Box& a, float area_a, const Box& b, float area_b) {
  const float both = shared_area(a, b);
  return both / (area_a + area_b - both);
}

// Returns the largest distance between the left borders of a box of this width and of a box whose
// IoU with it is above the threshold. The width that both cover, w, is more than threshold times
// the width that at least one covers; so the second width exceeds w by less than w (1 - threshold)
// / threshold. A little is added for rounding.
float reach_of(float width, float iou_threshold) {
  const float threshold = iou_threshold - 1e-5f;
  if (!(threshold > 0)) return INFINITY;
  return width * (1 - threshold) / threshold * 1.00001f;
}

}  // namespace

Suppressor::Suppressor(size_t boxes) {
  solids_.reserve(boxes);
  by_xmin_.reserve(boxes);
  xmin_.reserve(boxes);
  chosen_.reserve(boxes);
  queue_.reserve(boxes);
  selected_.reserve(boxes);
}

void Suppressor::set_boxes(std::span<const float> boxes) {
  solids_.clear();
  by_xmin_.clear();
  xmin_.clear();
  for (size_t i = 0; i < box_count(boxes); ++i) {
    const Box box = upright(box_at(boxes, i));
    solids_.push_back({box, area(box), kNowhere});
    if (solids_[i].area > 0 && std::isfinite(solids_[i].area)) {
      by_xmin_.push_back(static_cast<int32_t>(i));
    }
  }
  std::ranges::sort(by_xmin_, {}, [&](int32_t i) {
    return std::pair(solids_[static_cast<size_t>(i)].box.xmin, i);
  });
  for (size_t place = 0; place < by_xmin_.size(); ++place) {
    Solid& solid = solids_[static_cast<size_t>(by_xmin_[place])];
    solid.place = place;
    xmin_.push_back(solid.box.xmin);
  }
  chosen_.resize(by_xmin_.size());
  selected_.clear();
}

// Checks the selected boxes, or all boxes that are near enough, whichever are fewer.
bool Suppressor::suppressed(const Solid& candidate, float iou_threshold) const {
  auto suppresses = [&](int32_t index) {
    const Solid& other = solids_[static_cast<size_t>(index)];
    return other.place != kNowhere &&
           overlap(candidate.box, candidate.area, other.box, other.area) > iou_threshold;
  };
  const float reach = reach_of(candidate.box.xmax - candidate.box.xmin, iou_threshold);
  const auto first = std::ranges::lower_bound(xmin_, candidate.box.xmin - reach);
  const auto last = std::upper_bound(first, xmin_.end(), candidate.box.xmin + reach);
  if (static_cast<size_t>(last - first) >= selected_.size()) {
    return std::any_of(selected_.rbegin(), selected_.rend(), suppresses);
  }
  for (auto place = static_cast<size_t>(first - xmin_.begin());
       place < static_cast<size_t>(last - xmin_.begin()); ++place) {
    if (chosen_[place] != 0 && suppresses(by_xmin_[place])) return true;
  }
  return false;
}

std::span<const int32_t> Suppressor::select(std::span<const float> scores,
                                            const SuppressionSettings& settings) {
  queue_.clear();
  for (size_t i = 0; i < solids_.size(); ++i) {
    if (scores[i] > settings.score_threshold) queue_.push_back(rank_of(scores[i], i));
  }
  std::ranges::make_heap(queue_);
  std::ranges::fill(chosen_, uint8_t{0});
  selected_.clear();
  while (selected_.size() < settings.max_boxes && !queue_.empty()) {
    std::ranges::pop_heap(queue_);
    const size_t index = index_of(queue_.back());
    queue_.pop_back();
    const Solid& candidate = solids_[index];
    if (candidate.place != kNowhere) {
      if (suppressed(candidate, settings.iou_threshold)) continue;
      chosen_[candidate.place] = 1;
    }
    selected_.push_back(static_cast<int32_t>(index));
  }
  return selected_;
}

}  // namespace muster::detection
