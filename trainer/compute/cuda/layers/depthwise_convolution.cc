#include "trainer/compute/cuda/operation.h"
#include "trainer/compute/sliding.h"

namespace muster::compute::cuda {
namespace {

class DepthwiseOperation : public Operation {
 public:
  DepthwiseOperation(const DepthwiseConv2d& layer, const Node& node, Context& context)
      : context_(context),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        sliding_(sliding_of(layer.window, context.graph, node.inputs[0])),
        activation_(layer.activation),
        trainable_(node.trainable),
        places_(places_of(sliding_)),
        columns_(sliding_.window_height * sliding_.window_width * sliding_.channels),
        kernel_(context.offset_of(node.parameters[0])),
        bias_(layer.use_bias ? context.offset_of(node.parameters[1]) : -1) {
    if (trainable_) context.reserve_sums(context.max_rows * places_, columns_);
  }

  void forward(Program& program) override {
    program.add([this](const Step& step) {
      context_.gpu.launch(
          Depthwise{sliding_, step.rows, in_.values(), step.parameters + kernel_, out_.values()});
      const float* bias = bias_ < 0 ? nullptr : step.parameters + bias_;
      if (bias != nullptr || activation_ != Activation::linear)
        context_.gpu.launch(BiasActivation{step.rows * places_, sliding_.channels, out_.values(),
                                           bias, activation_, out_.values()});
    });
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient) return;
    const bool accumulate = in_.needs_gradient && Context::claim_gradient(in_);
    program.add([this, accumulate](const Step& step) {
      float* dy = out_.gradients();
      if (activation_ != Activation::linear)
        context_.gpu.launch(
            ActivationGradient{step.rows * out_.width, activation_, out_.values(), dy, dy, false});
      if (trainable_) {
        const int64_t rows = step.rows * places_;
        context_.gpu.launch(
            DepthwiseWeightParts{sliding_, step.rows, in_.values(), dy, context_.parts()});
        context_.sum_parts(rows, columns_, context_.parts(), step.gradients + kernel_);
        if (bias_ >= 0) context_.sum_columns(rows, sliding_.channels, dy, step.gradients + bias_);
      }
      if (in_.needs_gradient)
        context_.gpu.launch(DepthwiseInputGradient{
            sliding_, step.rows, dy, step.parameters + kernel_, in_.gradients(), accumulate});
    });
  }

 private:
  Context& context_;
  ValueMemory& in_;
  ValueMemory& out_;
  const Sliding sliding_;
  const Activation activation_;
  const bool trainable_;
  const int64_t places_;
  const int64_t columns_;        // of the kernel
  const int64_t kernel_, bias_;  // offsets; -1: there is no bias
};

}  // namespace

std::unique_ptr<Operation> make_operation(const DepthwiseConv2d& layer, const Node& node,
                                          Context& context) {
  return std::make_unique<DepthwiseOperation>(layer, node, context);
}

}  // namespace muster::compute::cuda
