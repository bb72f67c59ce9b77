#include "trainer/compute/cuda/layers/convolution_output.h"

namespace muster::compute::cuda {

ConvolutionOutput::ConvolutionOutput(const Node& node, bool use_bias, Activation activation,
                                     Context& context, bool reads_normalized)
    : context_(context),
      out_(context.output_of(node)),
      activation_(activation),
      trainable_(node.trainable),
      half_(context.half && (out_.normalized || reads_normalized)),
      filters_(context.graph.values[static_cast<size_t>(node.output)].shape.back()),
      places_(out_.width / filters_),
      stride_(padded(filters_, half_ && !out_.normalized)),
      bias_(use_bias ? context.offset_of(node.parameters[1]) : -1) {
  if (trainable_ && bias_ >= 0) context.reserve_column_sums(context.max_rows * places_, filters_);
  const int64_t raw = context.max_rows * places_ * stride_;
  Context::check_size("a batch at a convolution", raw);
  if (out_.normalized || half_) context.raw.reserve(bytes_of(raw, half_));
  if (stride_ != filters_) context.raw.reserve(bytes_of(raw, false));
}

Numbers ConvolutionOutput::z() const {
  if (stride_ == filters_) return out_.numbers();
  return {context_.raw.data(), false};
}

void ConvolutionOutput::forward(const Step& step) const {
  if (out_.normalized) return out_.normalized->forward(step);
  const float* bias = bias_ < 0 ? nullptr : step.parameters + bias_;
  if (bias == nullptr && activation_ == Activation::linear && stride_ == filters_) return;
  context_.gpu.launch(BiasActivation{step.rows * places_, filters_,
                                     static_cast<const float*>(z().data()), stride_, bias,
                                     activation_, out_.values()});
}

Numbers ConvolutionOutput::gradient(const Step& step) const {
  const Numbers apart{context_.raw.data(), half_};
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
  if (!half_) return dy;
  context_.gpu.launch(ReadRows{step.rows * places_, filters_, Reader{dy}, apart, stride_});
  return apart;
}

}  // namespace muster::compute::cuda
