#include <cmath>

#include "trainer/compute/cuda/operation.h"
#include "trainer/compute/random.h"

namespace muster::compute::cuda {
namespace {

// The mask is not stored: the backward pass computes it again.
class DropoutOperation : public Operation {
 public:
  DropoutOperation(const Dropout& dropout, const Node& node, Context& context)
      : context_(context),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        layer_(combine64(context.seed, hash_name(node.name))),
        threshold_(static_cast<uint32_t>(std::lround(double(dropout.rate) * 0x1p24))),
        scale_(1.0f / (1.0f - dropout.rate)) {}

  void forward(Program& program) override {
    program.add([this](const Step& step) { apply(step, in_.values(), out_.values(), false); });
  }

  void backward(Program& program) override {
    if (!in_.needs_gradient) return;
    const bool accumulate = Context::claim_gradient(in_);
    program.add([this, accumulate](const Step& step) {
      apply(step, out_.gradients(), in_.gradients(), accumulate);
    });
  }

 private:
  void apply(const Step& step, const float* from, float* to, bool accumulate) const {
    if (!step.training) {
      context_.gpu.launch(Copy{step.rows, out_.width, from, out_.width, to, out_.width, false});
      return;
    }
    context_.gpu.launch(DropElements{step.rows, out_.width, from, to, layer_, context_.step.epoch,
                                     context_.step.positions, threshold_, scale_, accumulate});
  }

  Context& context_;
  ValueMemory& in_;
  ValueMemory& out_;
  const uint64_t layer_;
  const uint32_t threshold_;  // between 0 and 2^24
  const float scale_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Dropout& dropout, const Node& node,
                                          Context& context) {
  return std::make_unique<DropoutOperation>(dropout, node, context);
}

}  // namespace muster::compute::cuda
