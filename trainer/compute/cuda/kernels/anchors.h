#pragma once

#include "trainer/compute/cuda/kernels/activation.h"
#include "trainer/detection/argmax_matcher.h"
#include "trainer/detection/box_coder.h"
#include "trainer/detection/hard_example_miner.h"
#include "trainer/detection/losses.h"
#include "trainer/detection/objects.h"

namespace muster::compute::cuda {

// The loss of a single-shot detector, step by step. What a step computes is said by the class or
// the function of trainer/detection that does it on the host. Here the losses of anchors are added
// up in float32, and there in float64: where two are nearly the same, another one may be harder.

constexpr auto kListHeader = static_cast<int64_t>(detection::ObjectList::kHeader);
constexpr auto kObjectFloats = static_cast<int64_t>(detection::ObjectList::kFloats);

MUSTER_INLINE detection::Box box_in(const float* box) {
  return {box[0], box[1], box[2], box[3]};
}
MUSTER_INLINE void write_box(const detection::Box& box, float* to) {
  to[0] = box.ymin;
  to[1] = box.xmin;
  to[2] = box.ymax;
  to[3] = box.xmax;
}

// Memory for each anchor of each image, [rows, count], and what is the same for all images.
struct Anchors {
  int64_t count;
  const float* boxes;    // [count, 4]
  int32_t* matches;      // the matched object, kUnmatched or kIgnored
  int32_t* claimed_by;   // the object that claims it, or kUnmatched
  int32_t* labels;       // the logit that should be large
  int32_t* ranks;        // among the anchors by falling loss
  int32_t* by_rank;      // the anchor of each rank
  int32_t* states;       // kUndecided, kSelected, ...
  int32_t* decisions;    // the next states
  float* similarities;   // to the matched object
  float* class_weights;  // the loss is multiplied by it, as code_weights
  float* code_weights;
  float* codes;  // [rows, count, 4], the matched object's
  float* class_losses;
  float* code_losses;
  float* boxes_found;   // [rows, count, 4], the decoded predictions, upright
  float* areas;         // theirs; 0 where the box neither suppresses nor is suppressed
  float* class_scales;  // the gradients are multiplied by it; 0 for an anchor that is left out
  float* code_scales;
};

// Matches the anchors with the objects of `targets`, and counts those that are matched with an
// object that counts, for each image.
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
    const float count = block.sum([&](int64_t thread) {
      float matched = 0;
      for (int64_t a = thread; a < anchors.count; a += kBlockThreads)
        if (teach(first + a, a, list, any)) matched += 1.0f;
      return matched;
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

  // Takes an object into account; the first of equals stays.
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

  // Says what an anchor is to be taught. Returns whether it is matched with an object that counts.
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

// Computes the losses of all anchors, and the boxes that they predict. y is [rows, count * (4 +
// logits)].
struct AnchorLosses {
  int64_t rows, logits;
  const float* y;
  detection::ClassificationLoss classification;
  detection::BoxCoder coder;
  float delta;  // of smooth L1
  Anchors anchors;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * anchors.count); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, rows * anchors.count, [&](int64_t i) {
      const int64_t row = i / anchors.count, anchor = i % anchors.count;
      const float* output = y + row * anchors.count * (4 + logits);
      const float* code = output + 4 * anchor;
      const float* x = output + 4 * anchors.count + logits * anchor;
      const float weight = anchors.class_weights[i];
      anchors.class_losses[i] = weight == 0.0f ? 0.0f : weight * class_loss(x, anchors.labels[i]);
      anchors.code_losses[i] =
          anchors.code_weights[i] == 0.0f
              ? 0.0f
              : anchors.code_weights[i] * code_loss(code, anchors.codes + 4 * i);
      const detection::Box found =
          detection::upright(coder.decode_one(code, box_in(anchors.boxes + 4 * anchor)));
      const float area = detection::area(found);
      write_box(found, anchors.boxes_found + 4 * i);
      anchors.areas[i] = area > 0 && area < INFINITY ? area : 0.0f;
    });
  }

 private:
  MUSTER_INLINE float class_loss(const float* x, int32_t label) const {
    float sum = 0;
    if (classification.kind == detection::ClassificationLoss::Kind::sigmoid) {
      for (int64_t c = 0; c < logits; ++c) {
        const float positive = c == label ? -x[c] : x[c];
        sum += maximum(0.0f, positive) + ::log1pf(exponential(-::fabsf(x[c])));
      }
      return sum;
    }
    float largest = x[0];
    for (int64_t c = 1; c < logits; ++c) largest = maximum(largest, x[c]);
    for (int64_t c = 0; c < logits; ++c)
      sum += exponential((x[c] - largest) / classification.logit_scale);
    return ::logf(sum) + (largest - x[label]) / classification.logit_scale;
  }

  MUSTER_INLINE float code_loss(const float* code, const float* target) const {
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      const float distance = ::fabsf(code[k] - target[k]);
      sum += distance <= delta ? 0.5f * distance * distance : delta * (distance - 0.5f * delta);
    }
    return sum;
  }
};

constexpr int32_t kUndecided = 0, kSelected = 1, kSuppressed = 2;

// An anchor's rivals are those of a larger loss, or of the same and a lower index, whose predicted
// box and its own overlap by more than iou_threshold.
struct Rivals {
  float iou_threshold;
  Anchors anchors;

  MUSTER_INLINE bool before(int64_t a, int64_t b) const {
    const float loss_a = anchors.class_losses[a], loss_b = anchors.class_losses[b];
    return loss_a > loss_b || (loss_a == loss_b && a < b);
  }
  MUSTER_INLINE bool overlap(int64_t a, int64_t b) const {
    const float area_a = anchors.areas[a], area_b = anchors.areas[b];
    if (area_a == 0.0f || area_b == 0.0f) return false;
    const float both = detection::shared_area(box_in(anchors.boxes_found + 4 * a),
                                              box_in(anchors.boxes_found + 4 * b));
    return both / (area_a + area_b - both) > iou_threshold;
  }
};

// Ranks the anchors, and selects those without rivals. One whose loss is NaN has no rank and is
// suppressed.
struct RankAnchors {
  int64_t rows;
  Rivals rivals;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * rivals.anchors.count); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Anchors& anchors = rivals.anchors;
    for_items(block, rows * anchors.count, [&](int64_t i) {
      if (anchors.class_losses[i] != anchors.class_losses[i]) {
        anchors.ranks[i] = -1;
        anchors.states[i] = kSuppressed;
        return;
      }
      const int64_t first = i / anchors.count * anchors.count;
      int64_t rank = 0;
      bool has_rival = false;
      for (int64_t other = first; other < first + anchors.count; ++other) {
        if (!rivals.before(other, i)) continue;
        ++rank;
        has_rival = has_rival || rivals.overlap(other, i);
      }
      anchors.ranks[i] = static_cast<int32_t>(rank);
      anchors.by_rank[first + rank] = static_cast<int32_t>(i - first);
      anchors.states[i] = has_rival ? kUndecided : kSelected;
    });
  }
};

// Selects the anchors that count (see detection/hard_example_miner.h), sums their losses, and
// writes the scales of all anchors.
struct MineAnchors {
  int64_t rows;
  detection::MiningSettings mining;
  Rivals rivals;
  float classification_weight, localization_weight;
  float* losses;  // [rows]
  float* classification;
  float* localization;

  MUSTER_INLINE Shape shape() const { return {rows}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Anchors& anchors = rivals.anchors;
    const int64_t first = block.index() * anchors.count;
    decide(block, first);
    for_block_items(block, anchors.count, [&](int64_t a) {
      anchors.class_scales[first + a] = anchors.code_scales[first + a] = 0;
    });
    const float without =
        sum_over(block, [&](int64_t a) { return anchors.ranks[first + a] < 0 ? 1.0f : 0.0f; });
    const int64_t ranked = anchors.count - static_cast<int64_t>(without);
    const auto at_rank = [&](int64_t rank) { return first + anchors.by_rank[first + rank]; };
    // Only so many are hard.
    count_in_order(
        block, ranked, [&](int64_t rank) { return anchors.states[at_rank(rank)] == kSelected; },
        [&](int64_t rank, int64_t number) {
          if (number > mining.num_hard_examples) anchors.states[at_rank(rank)] = kSuppressed;
        });
    const auto hard = [&](int64_t at) { return anchors.states[at] == kSelected; };
    const float positives = sum_over(block, [&](int64_t a) {
      return hard(first + a) && anchors.matches[first + a] >= 0 ? 1.0f : 0.0f;
    });
    const bool limited = mining.max_negatives_per_positive != 0;
    const auto by_positives = static_cast<int64_t>(mining.max_negatives_per_positive * positives);
    const int64_t most = by_positives > mining.min_negatives_per_image
                             ? by_positives
                             : mining.min_negatives_per_image;
    count_in_order(
        block, ranked,
        [&](int64_t rank) {
          const int64_t at = at_rank(rank);
          return hard(at) && anchors.matches[at] == detection::kUnmatched;
        },
        [&](int64_t rank, int64_t negatives) {
          const int64_t at = at_rank(rank);
          if (!hard(at) || (limited && anchors.matches[at] < 0 && negatives > most)) return;
          anchors.class_scales[at] = classification_weight * anchors.class_weights[at];
          anchors.code_scales[at] = localization_weight * anchors.code_weights[at];
          anchors.states[at] = kCounts;
        });
    const auto total = [&](const float* of) {
      return sum_over(block, [&](int64_t a) {
        return anchors.states[first + a] == kCounts ? of[first + a] : 0.0f;
      });
    };
    // Mining leaves NaN out: without this, a network that has diverged would have no loss.
    const float class_loss =
        without > 0 ? NAN : classification_weight * total(anchors.class_losses);
    const float code_loss = localization_weight * total(anchors.code_losses);
    block.each([&](int64_t thread) {
      if (thread != 0) return;
      classification[block.index()] = class_loss;
      localization[block.index()] = code_loss;
      losses[block.index()] = class_loss + code_loss;
    });
  }

 private:
  static constexpr int32_t kCounts = 3;  // it is hard, and not one of too many negatives

  template <class Block, class Function>
  MUSTER_INLINE float sum_over(Block& block, Function function) const {
    return block.sum([&](int64_t thread) {
      float sum = 0;
      for (int64_t a = thread; a < rivals.anchors.count; a += kBlockThreads) sum += function(a);
      return sum;
    });
  }

  // Calls use(item, number) for each of `items`, where `number` is how many of those up to this one
  // count. `use` may change whether its own item counts.
  template <class Block, class Counts, class Use>
  MUSTER_INLINE static void count_in_order(Block& block, int64_t items, Counts counts, Use use) {
    static_assert(kSharedFloats >= kBlockThreads);
    float* before = block.shared();
    const int64_t each = (items + kBlockThreads - 1) / kBlockThreads;
    const auto end_of = [&](int64_t thread) {
      const int64_t end = (thread + 1) * each;
      return end < items ? end : items;
    };
    block.each([&](int64_t thread) {
      float count = 0;
      for (int64_t i = thread * each; i < end_of(thread); ++i)
        if (counts(i)) count += 1.0f;
      before[thread] = count;
    });
    block.each([&](int64_t thread) {
      if (thread != 0) return;
      float sum = 0;
      for (int64_t i = 0; i < kBlockThreads; ++i) {
        const float count = before[i];
        before[i] = sum;
        sum += count;
      }
    });
    block.each([&](int64_t thread) {
      auto number = static_cast<int64_t>(before[thread]);
      for (int64_t i = thread * each; i < end_of(thread); ++i) {
        if (counts(i)) ++number;
        use(i, number);
      }
    });
  }

  // Goes on until all anchors are decided, one or more in each round. A round's decisions are those
  // that the states before it allow, so that the order of the threads has no influence.
  template <class Block>
  MUSTER_INLINE void decide(Block& block, int64_t first) const {
    const Anchors& anchors = rivals.anchors;
    const auto undecided = [&] {
      return sum_over(
          block, [&](int64_t a) { return anchors.states[first + a] == kUndecided ? 1.0f : 0.0f; });
    };
    while (undecided() > 0) {
      for_block_items(block, anchors.count, [&](int64_t a) {
        if (anchors.states[first + a] == kUndecided)
          anchors.decisions[first + a] = decision(first, first + a);
      });
      for_block_items(block, anchors.count, [&](int64_t a) {
        if (anchors.states[first + a] == kUndecided)
          anchors.states[first + a] = anchors.decisions[first + a];
      });
    }
  }
  MUSTER_INLINE int32_t decision(int64_t first, int64_t at) const {
    int32_t result = kSelected;
    for (int64_t other = first; other < first + rivals.anchors.count; ++other) {
      const int32_t state = rivals.anchors.states[other];
      if (state == kSuppressed || !rivals.before(other, at) || !rivals.overlap(other, at)) continue;
      if (state == kSelected) return kSuppressed;
      result = kUndecided;
    }
    return result;
  }
};

// Writes the gradient of y.
struct AnchorGradients {
  int64_t rows, logits;
  const float* y;
  detection::ClassificationLoss classification;
  float delta;  // of smooth L1
  Anchors anchors;
  float* dy;

  MUSTER_INLINE int64_t width() const { return anchors.count * (4 + logits); }
  MUSTER_INLINE Shape shape() const { return blocks_for(rows * width()); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, rows * width(), [&](int64_t i) {
      const int64_t row = i / width(), column = i % width();
      const bool code = column < 4 * anchors.count;
      const int64_t logit = column - 4 * anchors.count;
      const int64_t at = row * anchors.count + (code ? column / 4 : logit / logits);
      const float scale = (code ? anchors.code_scales : anchors.class_scales)[at];
      if (scale == 0.0f) {
        dy[i] = 0;
      } else if (code) {
        const float slope = y[i] - anchors.codes[4 * at + column % 4];
        dy[i] = scale * minimum(delta, maximum(-delta, slope));
      } else {
        dy[i] = scale * slope_of(y + i - logit % logits, logit % logits, anchors.labels[at]);
      }
    });
  }

 private:
  MUSTER_INLINE float slope_of(const float* x, int64_t c, int32_t label) const {
    const float wanted = c == label ? 1.0f : 0.0f;
    if (classification.kind == detection::ClassificationLoss::Kind::sigmoid) {
      const float small = exponential(-::fabsf(x[c]));
      return (x[c] >= 0 ? 1.0f : small) / (1.0f + small) - wanted;
    }
    float largest = x[0], sum = 0;
    for (int64_t k = 1; k < logits; ++k) largest = maximum(largest, x[k]);
    for (int64_t k = 0; k < logits; ++k)
      sum += exponential((x[k] - largest) / classification.logit_scale);
    const float share = exponential((x[c] - largest) / classification.logit_scale) / sum;
    return (share - wanted) / classification.logit_scale;
  }
};

}  // namespace muster::compute::cuda
