#include "trainer/compute/cuda/operation.h"

namespace muster::compute::cuda {
namespace {

class BatchNormalizationOperation : public Operation {
 public:
  BatchNormalizationOperation(const Node& node, Context& context)
      : gpu_(context.gpu),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        normalization_(context, node, Bounds::none(), out_.width) {}

  void forward(Program& program) override {
    program.add([this](const Step& step) {
      const Numbers z = in_.values();
      normalization_.forward(step, z);
      gpu_.launch(ReadValues{step.rows * normalization_.places(), normalization_.columns(),
                             normalization_.reader(z), out_.values()});
    });
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient) return;
    const bool accumulate = in_.needs_gradient && Context::claim_gradient(in_);
    program.add([this, accumulate](const Step& step) {
      const Numbers dx = in_.needs_gradient ? Numbers(in_.gradients()) : Numbers();
      normalization_.backward(step, in_.values(), out_.gradients(), dx, accumulate);
    });
  }

 private:
  Gpu& gpu_;
  ValueMemory& in_;
  ValueMemory& out_;
  const NormalizationStep normalization_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const BatchNormalization&, const Node& node,
                                          Context& context) {
  return std::make_unique<BatchNormalizationOperation>(node, context);
}

}  // namespace muster::compute::cuda
