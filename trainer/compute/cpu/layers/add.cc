#include "trainer/compute/cpu/program/operation.h"

namespace muster::compute::cpu {
namespace {

class AddOperation : public Operation {
 public:
  AddOperation(const Node& node, Context& context)
      : name_(node.name), context_(context), out_(context.value(node.output)) {
    for (int input : node.inputs) in_.push_back(&context.value(input));
  }

  void forward(Program& program) override {
    std::vector<Access> accesses{writes(out_.data, Share::columns)};
    for (const ValueBlocks* in : in_) accesses.push_back(reads(in->data, Share::columns));
    program.add(name_ + " forward", accesses, [this](const Step& step, TeamThread thread) {
      for (size_t i = 0; i < in_.size(); ++i) {
        add(step, thread, in_[i]->data, *in_[i], out_.data, out_, i > 0);
      }
    });
  }

  void backward(Program& program) override {
    for (ValueBlocks* in : in_) {
      if (!in->needs_gradient) continue;
      const bool accumulate = context_.claim_gradient(*in);
      program.add(name_ + " backward",
                  {reads(out_.gradient, Share::columns), writes(in->gradient, Share::columns)},
                  [this, in, accumulate](const Step& step, TeamThread thread) {
                    add(step, thread, out_.gradient, out_, in->gradient, *in, accumulate);
                  });
    }
  }

 private:
  void add(const Step& step, TeamThread thread, Block from, const ValueBlocks& from_value, Block to,
           const ValueBlocks& to_value, bool accumulate) const {
    const int64_t begin = thread.begin(out_.width, kLine);
    context_.kernels.copy(step.rows, thread.end(out_.width, kLine) - begin,
                          context_.arena.floats(from) + begin, from_value.stride,
                          context_.arena.floats(to) + begin, to_value.stride, accumulate);
  }

  const std::string name_;
  Context& context_;
  std::vector<ValueBlocks*> in_;
  ValueBlocks& out_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Add&, const Node& node, Context& context) {
  return std::make_unique<AddOperation>(node, context);
}

}  // namespace muster::compute::cpu
