#pragma once

#include "trainer/compute/cuda/context.h"

namespace muster::compute::cuda {

// It does what follows the computation of a convolution's raw outputs z, [rows * places, filters]:
// it adds the bias and applies the activation or, if the output is a normalized value, measures z.
class ConvolutionOutput {
 public:
  ConvolutionOutput(const Node& node, bool use_bias, Activation activation, Context& context);

  // Returns the memory into which the convolution writes z.
  Numbers z() const { return out_.numbers(); }
  int64_t width() const { return out_.width; }  // of a sample
  bool normalized() const { return out_.normalized != nullptr; }
  bool needs_gradient() const { return out_.needs_gradient; }

  // Says that gradient() will be called with this format.
  void reserve(bool half);
  // Asks for all that comes after z.
  void forward(const Step& step) const;
  // Asks for the gradients of z and of the bias. Returns that of z, as bfloat16 if `half`.
  Numbers gradient(const Step& step, bool half) const;

 private:
  Context& context_;
  ValueMemory& out_;
  const Activation activation_;
  const bool trainable_;
  const int64_t filters_, places_;
  const int64_t bias_;  // offset; -1: there is no bias
};

}  // namespace muster::compute::cuda
