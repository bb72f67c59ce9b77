#pragma once

#include "trainer/compute/cuda/gpu.h"
#include "trainer/compute/cuda/kernels/normalized.h"
#include "trainer/compute/cuda/program.h"
#include "trainer/compute/fusion.h"

namespace muster::compute::cuda {

class Context;
struct ValueMemory;

// A layer of batch normalization of numbers z, [rows * places, columns]; see kernels/normalized.h.
class NormalizationStep {
 public:
  // `bounds` limit the result: the bounds of the rectifier after the layer, if the rectifier is
  // part of this step.
  NormalizationStep(Context& context, const Node& node, Bounds bounds, int64_t width);

  // Asks for the statistics, after z of all rows has been written.
  void forward(const Step& step, Numbers z) const;
  // Asks for the gradients of gamma and beta and, unless dz is null, for dz (+)= the gradient of z.
  // dy, the gradient of the result, must be complete.
  void backward(const Step& step, Numbers z, Numbers dy, Numbers dz, bool accumulate) const;
  // Reads the result.
  Reader reader(Numbers z) const;

  int64_t columns() const { return columns_; }
  int64_t places() const { return places_; }

 private:
  ColumnScales scales() const;

  Context& context_;
  const float epsilon_;
  const bool trainable_;
  const Bounds bounds_;
  const int64_t columns_, places_;
  const int64_t gamma_, beta_, moving_mean_, moving_variance_;  // offsets
  GpuArray<float> scales_;  // [6, columns], in the order of ColumnScales
};

// The value after a convolution, its batch normalization and a rectifier; only the convolution's
// raw output z is kept. Readers compute the value from z; but see ValueMemory::factor. z and the
// gradient of the value are bfloat16 if the engine's precision is bfloat16.
class NormalizedValue {
 public:
  NormalizedValue(Context& context, const Fusion& fusion, const ValueMemory& memory);

  // Asks for the statistics, after z of all rows has been written.
  void forward(const Step& step) const;
  // Asks for the gradients of gamma, beta and z. The gradient of the value must be complete. `dz`
  // has room for all rows.
  void backward(const Step& step, Numbers dz) const;
  Reader reader() const;

 private:
  const ValueMemory& memory_;
  const NormalizationStep normalization_;
};

}  // namespace muster::compute::cuda
