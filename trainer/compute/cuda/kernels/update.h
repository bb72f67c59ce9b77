#pragma once

#include "trainer/compute/cuda/grid.h"
#include "trainer/compute/update_rule.h"

namespace muster::compute::cuda {

#include "trainer/compute/formulas/update.inc"

// A stretch of a tensor; a block takes one.
struct TensorPiece {
  int64_t begin, end;  // in floats of the layout
  int64_t tensor;      // its index in the layout
};
// The flat buffers.
struct FlatBuffers {
  float* parameters;
  const float* gradients;
  float* first;
  float* second;
  float* average;

  bool operator==(const FlatBuffers&) const = default;
};

// Updates pieces of trainable tensors by their rules, and those of the state segment, whose rule's
// `momentum` is theirs, by state = momentum * state + (1 - momentum) * gradient_scale * gradient.
struct UpdateTensors {
  int64_t pieces;
  const TensorPiece* piece;
  const UpdateRule* rules;  // of all tensors
  int64_t state_begin;      // tensors from this one on are state
  FlatBuffers buffers;

  MUSTER_INLINE Shape shape() const { return {pieces}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const TensorPiece one = piece[block.index()];
    Update update;
    update.rule = rules[one.tensor];
    if (one.tensor >= state_begin) return update_state(block, one, update.rule);
    update.parameters = buffers.parameters;
    update.first = buffers.first;
    update.second = buffers.second;
    update.average = buffers.average;
    with_formula(update, [&](auto type) {
      using Formula = typename decltype(type)::type;
      const Formula formula(update.rule);
      for_block_items(block, one.end - one.begin, [&](int64_t i) {
        formula.apply(update, one.begin + i, buffers.gradients[one.begin + i], Whole{});
      });
    });
  }

 private:
  template <class Block>
  MUSTER_INLINE void update_state(Block& block, TensorPiece one, const UpdateRule& rule) const {
    const float taken = (1.0f - rule.momentum) * rule.gradient_scale;
    for_block_items(block, one.end - one.begin, [&](int64_t i) {
      float& state = buffers.parameters[one.begin + i];
      state = fma(taken, buffers.gradients[one.begin + i], state * rule.momentum);
    });
  }
};

// Measures pieces, of TensorRatios::kChunk floats at most, of trainable tensors as the kernels
// `measure` and `measure_gradient` of the CPU do, with the same bits: squares[2 * piece] is that of
// the parameters, only if `lamb`, and the next one that of the direction.
struct MeasureTensors {
  int64_t pieces;
  const TensorPiece* piece;
  const UpdateRule* rules;
  bool lamb;
  FlatBuffers buffers;
  double* squares;

  MUSTER_INLINE Shape shape() const { return {pieces}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const TensorPiece one = piece[block.index()];
    const UpdateRule rule = rules[one.tensor];
    float* parts = block.template shared<2 * kSums>();
    block.each([&](int64_t thread) {
      if (thread < kSums) measure(one, rule, thread, parts[thread], parts[kSums + thread]);
    });
    block.each([&](int64_t thread) {
      if (thread >= 2) return;
      double sum = 0;
      for (int64_t i = 0; i < kSums; ++i) sum += static_cast<double>(parts[thread * kSums + i]);
      squares[2 * block.index() + thread] = sum;
    });
  }

 private:
  // There are sixteen sums, each of every sixteenth element.
  static constexpr int64_t kSums = 16;

  MUSTER_INLINE void measure(TensorPiece one, const UpdateRule& rule, int64_t first,
                             float& parameters, float& direction) const {
    const Shaping shape(rule);
    const Adam<true> adam(after_shaping(rule));
    float ps = 0, us = 0;
    for (int64_t i = one.begin + first; i < one.end; i += kSums) {
      const float p = buffers.parameters[i];
      const float g = shape(buffers.gradients[i], p);
      float u = g;
      if (lamb) {
        const float moved =
            adam.move(adam.first(buffers.first[i], g), adam.second(buffers.second[i], g));
        u = fma(adam.rate, moved, rule.decay * p);
        ps = fma(p, p, ps);
      }
      us = fma(u, u, us);
    }
    parameters = ps;
    direction = us;
  }
};

}  // namespace muster::compute::cuda
