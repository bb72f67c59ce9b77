#pragma once

#include "trainer/compute/cuda/grid.h"
#include "trainer/compute/models/activation.h"

namespace muster::compute::cuda {

#include "trainer/compute/formulas/elementwise.inc"

// The activations that work element by element.
MUSTER_INLINE float activated(Activation activation, float x) {
  switch (activation) {
    case Activation::relu:
      return relu(x);
    case Activation::relu6:
      return relu6(x);
    case Activation::sigmoid:
      return sigmoid(x);
    default:
      return x;
  }
}

// Calls function(slope), where slope(out, d) is the gradient of x, given the output and its
// gradient.
template <class Function>
MUSTER_INLINE void with_slope(Activation activation, Function function) {
  switch (activation) {
    case Activation::relu:
      return function([](float out, float d) { return relu_slope(out, d); });
    case Activation::relu6:
      return function([](float out, float d) { return relu6_slope(out, d); });
    case Activation::sigmoid:
      return function([](float out, float d) { return sigmoid_slope(out, d); });
    default:
      return function([](float, float d) { return d; });
  }
}

// y = activation(x + bias), [rows, columns]; y has no gaps. bias may be null, and y may be x.
struct BiasActivation {
  int64_t rows, columns;
  const float* x;
  int64_t ldx;
  const float* bias;
  Activation activation;
  float* y;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, rows * columns, [&](uint32_t i) {
      const uint32_t row = i / static_cast<uint32_t>(columns);
      const uint32_t column = i % static_cast<uint32_t>(columns);
      const float raw = x[row * static_cast<uint32_t>(ldx) + column];
      y[i] = activated(activation, bias == nullptr ? raw : raw + bias[column]);
    });
  }
};

// dx (+)= dy * activation'(y), where y is the activation's output. dx may be dy.
struct ActivationGradient {
  int64_t count;
  Activation activation;
  const float* y;
  const float* dy;
  float* dx;
  bool accumulate;

  MUSTER_INLINE Shape shape() const { return blocks_for(count); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    with_slope(activation, [&](auto slope) {
      for_items(block, count, [&](uint32_t i) {
        const float d = slope(y[i], dy[i]);
        dx[i] = accumulate ? d + dx[i] : d;
      });
    });
  }
};

}  // namespace muster::compute::cuda
