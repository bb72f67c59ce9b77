#include "trainer/compute/cuda/operation.h"

namespace muster::compute::cuda {
namespace {

class ActivationOperation : public Operation {
 public:
  ActivationOperation(const ActivationLayer& layer, const Node& node, Context& context)
      : gpu_(context.gpu),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        activation_(layer.activation) {}

  void forward(Program& program) override {
    program.add([this](const Step& step) {
      if (activation_ == Activation::softmax) {
        gpu_.launch(Softmax{step.rows, out_.width, in_.values(), out_.values()});
      } else {
        gpu_.launch(BiasActivation{step.rows, out_.width, in_.values(), out_.width, nullptr,
                                   activation_, out_.values()});
      }
    });
  }

  void backward(Program& program) override {
    if (!in_.needs_gradient) return;
    const bool accumulate = Context::claim_gradient(in_);
    program.add([this, accumulate](const Step& step) {
      if (activation_ == Activation::softmax) {
        gpu_.launch(SoftmaxGradient{step.rows, out_.width, out_.values(), out_.gradients(),
                                    in_.gradients(), accumulate});
      } else {
        gpu_.launch(ActivationGradient{step.rows * out_.width, activation_, out_.values(),
                                       out_.gradients(), in_.gradients(), accumulate});
      }
    });
  }

 private:
  Gpu& gpu_;
  ValueMemory& in_;
  ValueMemory& out_;
  const Activation activation_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const ActivationLayer& layer, const Node& node,
                                          Context& context) {
  return std::make_unique<ActivationOperation>(layer, node, context);
}

}  // namespace muster::compute::cuda
