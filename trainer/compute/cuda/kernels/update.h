#pragma once

#include "trainer/compute/cuda/grid.h"
#include "trainer/compute/update_rule.h"

namespace muster::compute::cuda {

#include "trainer/compute/formulas/update.inc"

// A piece of a tensor; each block handles one piece.
struct TensorPiece {
  int64_t begin, end;  // offsets in the layout, in floats
  int64_t tensor;      // the tensor's index in the layout
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

// Updates pieces of trainable tensors by their rules, and pieces of the state segment by state =
// momentum * state + (1 - momentum) * gradient_scale * gradient, with the `momentum` of the
// tensor's rule.
struct UpdateTensors {
  int64_t pieces;
  const TensorPiece* piece;
  const UpdateRule* rules;  // one for each tensor
  int64_t state_begin;      // tensors from this one on are state
  FlatBuffers buffers;
  // before: the parameters before the update, if they are not in the place of the new parameters.
  // copy: a second place for the new parameters.
  const float* before = nullptr;
  float* copy = nullptr;

  MUSTER_INLINE Shape shape() const { return {pieces}; }
  // A thread starts all its reads before it waits for one.
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    block.each([&](int64_t thread) {
      const TensorPiece one = piece[block.index()];
      const UpdateRule& rule = rules[one.tensor];
      for (int64_t begin = one.begin + thread; begin < one.end; begin += kEach * kBlockThreads) {
        Elements elements;
        elements.load(buffers, before, begin, one.end);
        elements.update(rule, one.tensor >= state_begin);
        elements.store(buffers, copy, begin, one.end);
      }
    });
  }

 private:
  static constexpr int64_t kEach = 4;

  // The elements that a thread updates at once: `begin`, `begin` + kBlockThreads, ... before `end`.
  struct Elements {
    float gradients[kEach], parameters[kEach], first[kEach], second[kEach], average[kEach];

    MUSTER_INLINE void load(const FlatBuffers& from, const float* before, int64_t begin,
                            int64_t end) {
      load(from.gradients, begin, end, gradients);
      load(before != nullptr ? before : from.parameters, begin, end, parameters);
      load(from.first, begin, end, first);
      load(from.second, begin, end, second);
      load(from.average, begin, end, average);
    }
    MUSTER_INLINE void store(const FlatBuffers& to, float* copy, int64_t begin, int64_t end) const {
      store(parameters, begin, end, to.parameters);
      store(parameters, begin, end, copy);
      store(first, begin, end, to.first);
      store(second, begin, end, to.second);
      store(average, begin, end, to.average);
    }

    MUSTER_INLINE void update(const UpdateRule& rule, bool state) {
      if (state) {
        const float taken = (1.0f - rule.momentum) * rule.gradient_scale;
        MUSTER_UNROLL_ALL
        for (int64_t n = 0; n < kEach; ++n)
          parameters[n] = fma(taken, gradients[n], parameters[n] * rule.momentum);
        return;
      }
      Update update;
      update.rule = rule;
      update.parameters = parameters;
      update.first = first;
      update.second = second;
      update.average = average;
      with_formula(update, [&](auto type) {
        using Formula = typename decltype(type)::type;
        const Formula formula(update.rule);
        MUSTER_UNROLL_ALL
        for (int64_t n = 0; n < kEach; ++n) formula.apply(update, n, gradients[n], Whole{});
      });
    }

   private:
    // `from` is null if the optimizer has no such buffer.
    MUSTER_INLINE static void load(const float* from, int64_t begin, int64_t end, float* to) {
      MUSTER_UNROLL_ALL
      for (int64_t n = 0; n < kEach; ++n) {
        const int64_t i = begin + n * kBlockThreads;
        to[n] = from != nullptr && i < end ? from[i] : 0.0f;
      }
    }
    MUSTER_INLINE static void store(const float* from, int64_t begin, int64_t end, float* to) {
      if (to == nullptr) return;
      MUSTER_UNROLL_ALL
      for (int64_t n = 0; n < kEach; ++n) {
        const int64_t i = begin + n * kBlockThreads;
        if (i < end) to[i] = from[n];
      }
    }
  };
};

// Measures pieces, of TensorRatios::kChunk floats at most, of trainable tensors as the kernels
// `measure` and `measure_gradient` of the CPU do, with the same bits: squares[2 * piece] is the sum
// for the parameters (only if `lamb`), and squares[2 * piece + 1] the sum for the direction.
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
  // There are sixteen sums, each over every sixteenth element.
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
