#include "trainer/compute/cuda/layers/convolution_output.h"

namespace muster::compute::cuda {

ConvolutionOutput::ConvolutionOutput(const Node& node, bool use_bias, Activation activation,
                                     Context& context)
    : context_(context),
      out_(context.output_of(node)),
      activation_(activation),
      trainable_(node.trainable),
      filters_(context.graph.values[static_cast<size_t>(node.output)].shape.back()),
      places_(out_.width / filters_),
      bias_(use_bias ? context.offset_of(node.parameters[1]) : -1) {
  if (trainable_ && bias_ >= 0) context.reserve_parts({context.max_rows * places_, filters_}, 1);
}

void ConvolutionOutput::reserve(bool half) {
  if (normalized() || half)
    context_.raw_gradients.reserve(bytes_of(context_.max_rows * out_.width, half));
}

void ConvolutionOutput::forward(const Step& step) const {
  if (out_.normalized) return out_.normalized->forward(step);
  const float* bias = bias_ < 0 ? nullptr : step.parameters + bias_;
  if (bias == nullptr && activation_ == Activation::linear) return;
  context_.gpu.launch(BiasActivation{step.rows * places_, filters_, out_.values(), bias,
                                     activation_, out_.values()});
}

Numbers ConvolutionOutput::gradient(const Step& step, bool half) const {
  const Numbers apart{context_.raw_gradients.data(), half};
  if (out_.normalized) {
    out_.normalized->backward(step, apart);
    return apart;
  }
  float* dy = out_.gradients();
  if (activation_ != Activation::linear)
    context_.gpu.launch(
        ActivationGradient{step.rows * out_.width, activation_, out_.values(), dy, dy, false});
  if (trainable_ && bias_ >= 0)
    context_.sum_columns(step.rows * places_, filters_, dy, step.gradients + bias_);
  if (!half) return dy;
  context_.gpu.launch(ReadValues{step.rows, out_.width, Reader{dy}, apart});
  return apart;
}

}  // namespace muster::compute::cuda
