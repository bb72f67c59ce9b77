#pragma once

#include "trainer/compute/cuda/context.h"

namespace muster::compute::cuda {

// The work after the computation of a convolution's raw outputs z, [rows * places, filters]: adds
// the bias and applies the activation or, if the output is a normalized value, measures z.
class ConvolutionOutput {
 public:
  // In an engine of bfloat16 the factors of a convolution that reads or writes a normalized value
  // are bfloat16.
  ConvolutionOutput(const Node& node, bool use_bias, Activation activation, Context& context,
                    bool reads_normalized);

  // Whether the convolution's factors, and the gradient of z, are bfloat16.
  bool half() const { return half_; }
  // The numbers from a place of z, or of its gradient, to the next; the numbers after a place's
  // filters are zero in the gradient, and undefined in z.
  int64_t stride() const { return stride_; }
  // Returns the memory into which the convolution writes z.
  Numbers z() const;
  bool needs_gradient() const { return out_.needs_gradient; }

  // Asks for all work after z.
  void forward(const Step& step) const;
  // Asks for the gradients of z and of the bias. Returns the gradient of z.
  Numbers gradient(const Step& step) const;

 private:
  Context& context_;
  ValueMemory& out_;
  const Activation activation_;
  const bool trainable_;
  const bool half_;
  const int64_t filters_, places_, stride_;
  const int64_t bias_;  // offset; -1: there is no bias
};

// Products of bfloat16 rows are fast if the rows begin and end at multiples of 16 bytes.
inline int64_t padded(int64_t numbers, bool half) {
  return half ? (numbers + 7) / 8 * 8 : numbers;
}

}  // namespace muster::compute::cuda
