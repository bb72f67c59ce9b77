#pragma once

#include "trainer/compute/cuda/kernels/softmax.h"
#include "trainer/compute/models/target_losses.h"

namespace muster::compute::cuda {

// Each kernel writes the rows' losses and the gradient of the model's output y, [rows, columns],
// both times the row's weight.

// `correct` is 1 if the label's output is the largest, or the first of several equally large ones.
struct SoftmaxCrossEntropyRows {
  int64_t rows, columns;
  const float* y;
  const int32_t* labels;
  const float* weights;
  float* dy;
  float* losses;
  float* correct;

  MUSTER_INLINE Shape shape() const {
    return {columns <= kFew ? quotient_up(rows, kFewRows) : rows};
  }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    if (columns <= kFew) return few_columns(block);
    const int64_t row = block.index();
    const int64_t label = labels[row];
    const float* x = y + row * columns;
    float* d = dy + row * columns;
    const SoftmaxScale scale = exponentials(block, columns, x, d);
    for_block_items(block, columns, [&](int64_t c) {
      const float probability = d[c] * (1.0f / scale.total);
      d[c] = weights[row] * (c == label ? probability - 1.0f : probability);
    });
    // The number of outputs that are larger than the label's output, or equal and before it.
    const float before = sum_block_items(
        block, columns, [&](int64_t c) { return is_before(x, c, label) ? 1.0f : 0.0f; });
    block.each([&](int64_t thread) {
      if (thread == 0) finish(row, scale, x[label], before == 0.0f);
    });
  }

 private:
  static constexpr int64_t kFew = 32;
  static constexpr int64_t kFewRows = kBlockThreads / kFew;

  // Whether output c is larger than the label's output, or equal and before it.
  MUSTER_INLINE static bool is_before(const float* x, int64_t c, int64_t label) {
    return x[c] > x[label] || (c < label && x[c] == x[label]);
  }
  MUSTER_INLINE void finish(int64_t row, SoftmaxScale scale, float of_label, bool is_first) const {
    losses[row] = weights[row] * (::logf(scale.total) - (of_label - scale.most));
    correct[row] = is_first ? 1.0f : 0.0f;
  }

  // A block has kFewRows rows and a thread for each output; the thread goes through the other
  // outputs of its row.
  template <class Block>
  MUSTER_INLINE void few_columns(Block& block) const {
    float* memory = block.template shared<2 * kBlockThreads>();
    struct Place {
      int64_t row;
      int32_t column, label;
      float* x;             // the row's outputs
      float* exponentials;  // the exponentials of the outputs
      SoftmaxScale scale;
    };
    auto places = block.template locals<Place>();
    const auto used = [&](const Place& place) {
      return place.row < rows && place.column < columns;
    };
    block.each([&](int64_t thread) {
      Place& place = places[thread];
      place.row = block.index() * kFewRows + thread / kFew;
      place.column = static_cast<int32_t>(thread % kFew);
      place.x = memory + thread / kFew * kFew;
      place.exponentials = place.x + kBlockThreads;
      if (!used(place)) return;
      place.label = labels[place.row];
      place.x[place.column] = y[place.row * columns + place.column];
    });
    block.each([&](int64_t thread) {
      Place& place = places[thread];
      if (!used(place)) return;
      float most = place.x[0];
      for (int32_t c = 1; c < columns; ++c) most = maximum(most, place.x[c]);
      place.scale.most = most;
      place.exponentials[place.column] = exponential(place.x[place.column] - most);
    });
    block.each([&](int64_t thread) {
      Place& place = places[thread];
      if (!used(place)) return;
      float total = 0;
      bool is_first = true;
      for (int32_t c = 0; c < columns; ++c) {
        total += place.exponentials[c];
        is_first = is_first && !is_before(place.x, c, place.label);
      }
      place.scale.total = total;
      const float probability = place.exponentials[place.column] * (1.0f / total);
      dy[place.row * columns + place.column] =
          weights[place.row] * (place.column == place.label ? probability - 1.0f : probability);
      if (place.column == 0) finish(place.row, place.scale, place.x[place.label], is_first);
    });
  }
};

struct SquaredErrorRows {
  int64_t rows, columns;
  const float* y;
  const float* targets;
  const float* weights;
  float* dy;
  float* losses;

  MUSTER_INLINE Shape shape() const { return {rows}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const int64_t at = block.index() * columns;
    const float scale = 2.0f / static_cast<float>(columns);
    const float total = block.sum([&](int64_t thread) {
      float sum = 0;
      for (int64_t i = at + thread; i < at + columns; i += kBlockThreads) {
        const float difference = y[i] - targets[i];
        dy[i] = difference * scale * weights[block.index()];
        sum = fma(difference, difference, sum);
      }
      return sum;
    });
    block.each([&](int64_t thread) {
      if (thread == 0)
        losses[block.index()] = total / static_cast<float>(columns) * weights[block.index()];
    });
  }
};

// A row has `targets_of_row` targets. `terms` is used only if the loss has a term.
template <class Loss>
struct TargetRows {
  int64_t rows, columns;
  const float* y;
  int64_t targets_of_row;
  const float* targets;
  const float* weights;
  Loss loss;
  float* dy;
  float* losses;
  float* terms;

  MUSTER_INLINE Shape shape() const { return {rows}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const int64_t row = block.index();
    const float* const outputs = y + row * columns;
    const auto one = [&](int64_t column) {
      return loss_of_output(loss, outputs, targets + row * targets_of_row, targets_of_row, column);
    };
    const float scale = 1.0f / static_cast<float>(columns);
    const float total = sum_block_items(block, columns, [&](int64_t column) {
      const TargetLoss output = one(column);
      dy[row * columns + column] = scale * output.slope * weights[row];
      return output.loss;
    });
    float term = 0;
    if constexpr (Loss::kTerms > 0)
      term = sum_block_items(block, columns, [&](int64_t column) { return one(column).term; });
    block.each([&](int64_t thread) {
      if (thread != 0) return;
      losses[row] = total * scale * weights[row];
      if constexpr (Loss::kTerms > 0) terms[row] = term * scale;
    });
  }
};

}  // namespace muster::compute::cuda
