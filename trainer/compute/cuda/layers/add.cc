#include "trainer/compute/cuda/operation.h"

namespace muster::compute::cuda {
namespace {

class AddOperation : public Operation {
 public:
  AddOperation(const Node& node, Context& context)
      : gpu_(context.gpu), out_(context.value(node.output)) {
    for (const int input : node.inputs) in_.push_back(&context.value(input));
  }

  void forward(Program& program) override {
    program.add([this](const Step& step) {
      for (size_t i = 0; i < in_.size(); ++i) copy(step, in_[i]->values(), out_.values(), i > 0);
    });
  }

  void backward(Program& program) override {
    for (ValueMemory* in : in_) {
      if (!in->needs_gradient) continue;
      const bool accumulate = Context::claim_gradient(*in);
      program.add([this, in, accumulate](const Step& step) {
        copy(step, out_.gradients(), in->gradients(), accumulate);
      });
    }
  }

 private:
  void copy(const Step& step, const float* from, float* to, bool accumulate) const {
    gpu_.launch(Copy{step.rows, out_.width, from, out_.width, to, out_.width, accumulate});
  }

  Gpu& gpu_;
  ValueMemory& out_;
  std::vector<ValueMemory*> in_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Add&, const Node& node, Context& context) {
  return std::make_unique<AddOperation>(node, context);
}

}  // namespace muster::compute::cuda
