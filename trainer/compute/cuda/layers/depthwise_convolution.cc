#include "trainer/compute/cuda/layers/convolution_output.h"
#include "trainer/compute/cuda/operation.h"
#include "trainer/compute/sliding.h"

namespace muster::compute::cuda {
namespace {

class DepthwiseOperation : public Operation {
 public:
  DepthwiseOperation(const DepthwiseConv2d& layer, const Node& node, Context& context)
      : context_(context),
        in_(context.value(node.inputs[0])),
        out_(node, layer.use_bias, layer.activation, context, false),
        sliding_(sliding_of(layer.window, context.graph, node.inputs[0])),
        trainable_(node.trainable),
        taps_(sliding_.window_height * sliding_.window_width),
        kernel_(context.offset_of(node.parameters[0])) {
    if (trainable_)
      context.reserve_parts(DepthwiseWeightParts{sliding_, context.max_rows}.cut(), taps_);
  }

  void forward(Program& program) override {
    program.add([this](const Step& step) {
      context_.gpu.launch(
          Depthwise{sliding_, step.rows, in_.reader(), step.parameters + kernel_, out_.z()});
      out_.forward(step);
    });
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient()) return;
    const bool accumulate = in_.needs_gradient && Context::claim_gradient(in_);
    program.add([this, accumulate](const Step& step) {
      const Numbers dz = out_.gradient(step);
      if (trainable_) {
        const DepthwiseWeightParts parts{sliding_, step.rows, in_.reader(), dz, context_.parts()};
        context_.gpu.launch(parts);
        context_.sum_parts(parts.cut().parts, taps_ * sliding_.channels, context_.parts(),
                           step.gradients + kernel_);
      }
      if (in_.needs_gradient)
        context_.gpu.launch(DepthwiseInputGradient{sliding_, step.rows, dz,
                                                   step.parameters + kernel_,
                                                   in_.gradient_numbers(), accumulate});
    });
  }

 private:
  Context& context_;
  ValueMemory& in_;
  ConvolutionOutput out_;
  const Sliding sliding_;
  const bool trainable_;
  const int64_t taps_;    // number of places of the window
  const int64_t kernel_;  // offset
};

}  // namespace

std::unique_ptr<Operation> make_operation(const DepthwiseConv2d& layer, const Node& node,
                                          Context& context) {
  return std::make_unique<DepthwiseOperation>(layer, node, context);
}

}  // namespace muster::compute::cuda
