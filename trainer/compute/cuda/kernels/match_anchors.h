#pragma once

#include "trainer/compute/cuda/kernels/anchors.h"
#include "trainer/detection/argmax_matcher.h"
#include "trainer/detection/box_coder.h"
#include "trainer/detection/objects.h"

namespace muster::compute::cuda {

constexpr auto kListHeader = static_cast<int64_t>(detection::ObjectList::kHeader);
constexpr auto kObjectFloats = static_cast<int64_t>(detection::ObjectList::kFloats);

// For each image, matches the anchors with the objects of `targets`, and counts the anchors that
// are matched with an object that counts.
struct MatchAnchors {
  int64_t rows, target_floats;
  const float* targets;  // [rows, target_floats], each an ObjectList
  int64_t classes;
  detection::MatcherSettings matcher;
  detection::BoxCoder coder;
  Anchors anchors;
  float* counts;  // [rows]

  MUSTER_INLINE Shape shape() const { return {rows}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const int64_t first = block.index() * anchors.count;
    const float* list = targets + block.index() * target_floats + kListHeader;
    const int64_t most = (target_floats - kListHeader) / kObjectFloats;
    for_block_items(block, anchors.count, [&](int64_t a) {
      anchors.matches[first + a] = 0;
      anchors.similarities[first + a] = -1.0f;
      anchors.claimed_by[first + a] = detection::kUnmatched;
    });
    bool any = false;
    for (int64_t i = 0; i < most; ++i) {
      const float* object = list + i * kObjectFloats;
      const float label = object[detection::ObjectList::kLabel];
      if (!(label >= 0)) break;
      if (label >= static_cast<float>(classes)) continue;
      any = true;
      compare(block, first, i, object);
    }
    const float count = sum_block_items(block, anchors.count, [&](int64_t a) {
      return teach(first + a, a, list, any) ? 1.0f : 0.0f;
    });
    block.each([&](int64_t thread) {
      if (thread == 0) counts[block.index()] = count;
    });
  }

 private:
  MUSTER_INLINE static float weight_of(const float* object) {
    using List = detection::ObjectList;
    return object[List::kCrowd] != 0 ? 0.0f : object[List::kWeight];
  }
  MUSTER_INLINE float similarity(int64_t anchor, const float* object) const {
    return detection::iou(box_in(anchors.boxes + 4 * anchor), box_in(object));
  }

  // Updates the matches for one more object; an earlier object with the same similarity stays.
  template <class Block>
  MUSTER_INLINE void compare(Block& block, int64_t first, int64_t i, const float* object) const {
    const float largest = block.most([&](int64_t thread) {
      float largest_here = 0;
      for (int64_t a = thread; a < anchors.count; a += kBlockThreads) {
        const float value = similarity(a, object);
        largest_here = maximum(largest_here, value);
        if (!(value > anchors.similarities[first + a])) continue;
        anchors.similarities[first + a] = value;
        anchors.matches[first + a] = static_cast<int32_t>(i);
      }
      return largest_here;
    });
    if (!(weight_of(object) > 0) || !(largest > 0)) return;
    // Indices are whole numbers that a float holds.
    const float best = block.most([&](int64_t thread) {
      for (int64_t a = thread; a < anchors.count; a += kBlockThreads)
        if (similarity(a, object) == largest) return static_cast<float>(-a);
      return static_cast<float>(-anchors.count);
    });
    if (best <= static_cast<float>(-anchors.count)) return;
    block.each([&](int64_t thread) {
      int32_t& claimed_by = anchors.claimed_by[first + static_cast<int64_t>(-best)];
      if (thread == 0 && claimed_by == detection::kUnmatched) claimed_by = static_cast<int32_t>(i);
    });
  }

  MUSTER_INLINE int32_t match_of(int64_t at, bool any) const {
    if (anchors.claimed_by[at] != detection::kUnmatched && matcher.force_match_for_each_row)
      return anchors.claimed_by[at];
    if (!any) return detection::kUnmatched;
    if (anchors.similarities[at] >= matcher.matched_threshold) return anchors.matches[at];
    const bool low = !(anchors.similarities[at] >= matcher.unmatched_threshold);
    return low == matcher.negatives_lower_than_unmatched ? detection::kUnmatched
                                                         : detection::kIgnored;
  }

  // Writes an anchor's targets. Returns whether the anchor is matched with an object that counts.
  MUSTER_INLINE bool teach(int64_t at, int64_t anchor, const float* list, bool any) const {
    const int32_t match = match_of(at, any);
    anchors.matches[at] = match;
    float* code = anchors.codes + 4 * at;
    if (match < 0) {
      anchors.labels[at] = 0;
      anchors.class_weights[at] = match == detection::kIgnored ? 0.0f : 1.0f;
      anchors.code_weights[at] = 0;
      write_box({}, code);
      return false;
    }
    const float* object = list + match * kObjectFloats;
    anchors.labels[at] = static_cast<int32_t>(object[detection::ObjectList::kLabel]) + 1;
    anchors.class_weights[at] = anchors.code_weights[at] = weight_of(object);
    coder.encode_one(box_in(object), box_in(anchors.boxes + 4 * anchor), code);
    return weight_of(object) > 0;
  }
};

}  // namespace muster::compute::cuda
