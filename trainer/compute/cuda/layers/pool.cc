#include "trainer/compute/cuda/operation.h"
#include "trainer/compute/sliding.h"

namespace muster::compute::cuda {
namespace {

class PoolOperation : public Operation {
 public:
  PoolOperation(const Window& window, bool largest, const Node& node, Context& context)
      : gpu_(context.gpu),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        sliding_(sliding_of(window, context.graph, node.inputs[0])),
        largest_(largest) {}

  void forward(Program& program) override {
    program.add([this](const Step& step) {
      gpu_.launch(Pool{sliding_, step.rows, largest_, in_.values(), out_.values()});
    });
  }

  void backward(Program& program) override {
    if (!in_.needs_gradient) return;
    const bool accumulate = Context::claim_gradient(in_);
    program.add([this, accumulate](const Step& step) {
      gpu_.launch(PoolGradient{sliding_, step.rows, largest_, in_.values(), out_.values(),
                               out_.gradients(), in_.gradients(), accumulate});
    });
  }

 private:
  Gpu& gpu_;
  ValueMemory& in_;
  ValueMemory& out_;
  const Sliding sliding_;
  const bool largest_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const MaxPool& pool, const Node& node, Context& context) {
  return std::make_unique<PoolOperation>(pool.window, true, node, context);
}

std::unique_ptr<Operation> make_operation(const AveragePool& pool, const Node& node,
                                          Context& context) {
  return std::make_unique<PoolOperation>(pool.window, false, node, context);
}

std::unique_ptr<Operation> make_operation(const GlobalAveragePool&, const Node& node,
                                          Context& context) {
  return std::make_unique<PoolOperation>(whole_image(context.graph, node.inputs[0]), false, node,
                                         context);
}

}  // namespace muster::compute::cuda
