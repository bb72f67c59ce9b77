#pragma once

#include "trainer/compute/cuda/kernels/anchors.h"
#include "trainer/compute/cuda/numbers.h"
#include "trainer/detection/argmax_matcher.h"
#include "trainer/detection/hard_example_miner.h"

namespace muster::compute::cuda {

constexpr int32_t kUndecided = 0, kSelected = 1, kSuppressed = 2;

// The data that decide whether one anchor is a rival of another.
struct Candidate {
  float loss, area;
  detection::Box box;  // the predicted box
};

// An anchor's rivals are the anchors with a larger loss (or the same loss and a lower index) whose
// predicted boxes overlap the anchor's predicted box by more than iou_threshold.
struct Rivals {
  float iou_threshold;
  Anchors anchors;

  MUSTER_INLINE Candidate candidate(int64_t at) const {
    return {anchors.class_losses[at], anchors.areas[at], box_in(anchors.boxes_found + 4 * at)};
  }
  // `first` says whether a has the lower index.
  MUSTER_INLINE static bool before(const Candidate& a, const Candidate& b, bool first) {
    return a.loss > b.loss || (a.loss == b.loss && first);
  }
  // If the overlap of two boxes is more than a part t of their union, each box covers more than a
  // part t of the other in either direction. So, up to rounding, the distance of their lower edges
  // is at most 1 / t - 1 times the length of either box.
  struct Reach {
    float y, x;
    MUSTER_INLINE bool has(const detection::Box& a, const detection::Box& b) const {
      return (fabsf(a.ymin - b.ymin) <= y) & (fabsf(a.xmin - b.xmin) <= x);
    }
  };
  MUSTER_INLINE Reach reach(const Candidate& a) const {
    const float part =
        iou_threshold > 0.0f ? 1.01f * (1.0f / iou_threshold - 1.0f) + 1e-5f : INFINITY;
    return {part * (a.box.ymax - a.box.ymin), part * (a.box.xmax - a.box.xmin)};
  }
  // Up to rounding, two boxes share at most the area of the smaller box.
  MUSTER_INLINE bool may_overlap(const Candidate& a, const Candidate& b) const {
    const float small = minimum(a.area, b.area), large = maximum(a.area, b.area);
    return (small > 0.0f) & (small >= 0.999f * iou_threshold * large);
  }
  MUSTER_INLINE bool overlap(const Candidate& a, const Candidate& b) const {
    if (!may_overlap(a, b)) return false;
    const float both = detection::shared_area(a.box, b.box);
    return both / (a.area + b.area - both) > iou_threshold;
  }
};

// Ranks the anchors, and selects those without rivals. An anchor whose loss is NaN has no rank and
// is suppressed.
struct RankAnchors {
  int64_t rows;
  Rivals rivals;

  // A block takes kOwn anchors of a row. Its threads are in slices, and each slice compares all of
  // the block's anchors with its share of the row's anchors.
  MUSTER_INLINE int64_t blocks_of_row() const { return quotient_up(rivals.anchors.count, kOwn); }
  MUSTER_INLINE Shape shape() const { return {rows * blocks_of_row()}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Anchors& anchors = rivals.anchors;
    const int count = static_cast<int>(anchors.count);
    const int64_t first = block.index() / blocks_of_row() * anchors.count;
    const int begin = static_cast<int>(block.index() % blocks_of_row()) * kOwn;
    auto states = block.template locals<State>();
    float* others = block.template shared<6 * kBlockThreads>();
    float* found = block.template shared<2 * kBlockThreads>();
    block.each([&](int64_t thread) {
      const int own = begin + static_cast<int>(thread) % kOwn;
      State& state = states[thread];
      state.own = rivals.candidate(first + (own < count ? own : 0));
      state.reach = rivals.reach(state.own);
      state.rank = 0;
      state.has_rival = false;
    });
    for (int from = 0; from < count; from += kThreads) {
      block.each([&](int64_t thread) {
        // No number is larger than or equal to NaN.
        Candidate other{NAN, 0, {}};
        if (from + thread < count) other = rivals.candidate(first + from + thread);
        float* to = others + thread;
        to[0] = other.loss;
        to[kThreads] = other.area;
        to[2 * kThreads] = other.box.ymin;
        to[3 * kThreads] = other.box.xmin;
        to[4 * kThreads] = other.box.ymax;
        to[5 * kThreads] = other.box.xmax;
      });
      block.each([&](int64_t thread) {
        const int slice = static_cast<int>(thread) / kOwn * kOwn;
        // The number of the slice's anchors that have a lower index.
        const int lower = from + slice < begin    ? kOwn
                          : from + slice == begin ? static_cast<int>(thread) % kOwn
                                                  : 0;
        compare(others + slice, lower, states[thread]);
      });
    }
    block.each([&](int64_t thread) {
      found[thread] = static_cast<float>(states[thread].rank);
      found[kThreads + thread] = states[thread].has_rival ? 1.0f : 0.0f;
    });
    block.each([&](int64_t thread) {
      const int64_t own = begin + thread;
      if (thread >= kOwn || own >= count) return;
      float rank = 0, has_rival = 0;
      for (int64_t i = thread; i < kThreads; i += kOwn) {
        rank += found[i];
        has_rival += found[kThreads + i];
      }
      const float loss = states[thread].own.loss;
      const bool ranked = loss == loss;
      anchors.ranks[first + own] = ranked ? static_cast<int32_t>(rank) : -1;
      anchors.states[first + own] = ranked && has_rival == 0.0f ? kSelected
                                    : ranked                    ? kUndecided
                                                                : kSuppressed;
      if (ranked) anchors.by_rank[first + static_cast<int32_t>(rank)] = static_cast<int32_t>(own);
    });
  }

 private:
  static constexpr int kThreads = static_cast<int>(kBlockThreads), kOwn = 64;

  struct State {
    Candidate own;
    Rivals::Reach reach;
    int rank;
    bool has_rival;
  };

  // Compares with a slice's anchors, the first `lower` of which have a lower index.
  MUSTER_INLINE void compare(const float* others, int lower, State& state) const {
    MUSTER_UNROLL(4)
    for (int i = 0; i < kOwn; i += 4) {
      const Pack<4> losses = load_floats<4>(others + i);
      const Pack<4> ymins = load_floats<4>(others + 2 * kThreads + i);
      const Pack<4> xmins = load_floats<4>(others + 3 * kThreads + i);
      bool before[4], may = false;
      MUSTER_UNROLL_ALL
      for (int j = 0; j < 4; ++j) {
        const Candidate other{losses.at[j], 0, {ymins.at[j], xmins.at[j], 0, 0}};
        before[j] = Rivals::before(other, state.own, i + j < lower);
        state.rank += before[j] ? 1 : 0;
        may |= before[j] & state.reach.has(other.box, state.own.box);
      }
      if (!may || state.has_rival) continue;
      for (int j = 0; j < 4; ++j) {
        const float* at = others + i + j;
        const Candidate other{
            at[0],
            at[kThreads],
            {at[2 * kThreads], at[3 * kThreads], at[4 * kThreads], at[5 * kThreads]}};
        state.has_rival = state.has_rival || (Rivals::before(other, state.own, i + j < lower) &&
                                              rivals.overlap(other, state.own));
      }
    }
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
    // The number of hard anchors is limited.
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
    // Mining leaves NaN out, so a network that has diverged would have no loss without this.
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
  static constexpr int32_t kCounts = 3;  // the anchor is hard, and not above the limit of negatives

  template <class Block, class Function>
  MUSTER_INLINE float sum_over(Block& block, Function function) const {
    return sum_block_items(block, rivals.anchors.count, function);
  }

  // Calls use(item, number) for each of `items`, where `number` is the number of items, up to and
  // including this item, for which counts(item) is true. `use` may change counts(item) for its own
  // item.
  template <class Block, class Counts, class Use>
  MUSTER_INLINE static void count_in_order(Block& block, int64_t items, Counts counts, Use use) {
    float* before = block.template shared<kBlockThreads>();
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

  // Goes on until all anchors are decided, one or more in each round. A round's decisions depend
  // only on the states before the round, so the order of the threads has no influence.
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
    const Candidate own = rivals.candidate(at);
    int32_t result = kSelected;
    for (int64_t at_other = first; at_other < first + rivals.anchors.count; ++at_other) {
      const int32_t state = rivals.anchors.states[at_other];
      if (state == kSuppressed) continue;
      const Candidate other = rivals.candidate(at_other);
      if (!Rivals::before(other, own, at_other < at) || !rivals.overlap(other, own)) continue;
      if (state == kSelected) return kSuppressed;
      result = kUndecided;
    }
    return result;
  }
};

}  // namespace muster::compute::cuda
