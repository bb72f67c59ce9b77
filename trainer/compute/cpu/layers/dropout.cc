#include <cmath>

#include "trainer/compute/cpu/program/operation.h"
#include "trainer/compute/random.h"

namespace muster::compute::cpu {
namespace {

// The mask is not stored: the backward pass computes it again.
class DropoutOperation : public Operation {
 public:
  DropoutOperation(const Dropout& dropout, const Node& node, Context& context)
      : name_(node.name),
        context_(context),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        layer_(hash_name(node.name)),
        threshold_(static_cast<uint32_t>(std::lround(double(dropout.rate) * 0x1p24))),
        scale_(1.0f / (1.0f - dropout.rate)) {}

  void forward(Program& program) override {
    program.add(name_ + " forward",
                {reads(in_.data, Share::columns), writes(out_.data, Share::columns)},
                [this](const Step& step, TeamThread thread) {
                  apply(step, thread, in_.data, out_.data, false);
                });
  }

  void backward(Program& program) override {
    if (!in_.needs_gradient) return;
    const bool accumulate = context_.claim_gradient(in_);
    program.add(name_ + " backward",
                {reads(out_.gradient, Share::columns), writes(in_.gradient, Share::columns)},
                [this, accumulate](const Step& step, TeamThread thread) {
                  apply(step, thread, out_.gradient, in_.gradient, accumulate);
                });
  }

 private:
  void apply(const Step& step, TeamThread thread, Block from, Block to, bool accumulate) const {
    const int64_t begin = thread.begin(out_.width, kLine);
    const int64_t n = thread.end(out_.width, kLine) - begin;
    const float* in = context_.arena.floats(from) + begin;
    float* out = context_.arena.floats(to) + begin;
    if (!step.training) {
      return context_.kernels.copy(step.rows, n, in, in_.stride, out, out_.stride, false);
    }
    const Batch& batch = *step.batch;
    const uint64_t epoch = combine64(combine64(context_.seed, layer_), batch.epoch);
    for (int64_t row = 0; row < step.rows; ++row) {
      const size_t r = static_cast<size_t>(row);
      const uint64_t position = r < batch.positions.size() ? batch.positions[r] : r;
      context_.kernels.dropout(n, in + row * in_.stride, out + row * out_.stride,
                               combine64(epoch, position), begin, threshold_, scale_, accumulate);
    }
  }

  const std::string name_;
  Context& context_;
  ValueBlocks& in_;
  ValueBlocks& out_;
  const uint64_t layer_;
  const uint32_t threshold_;  // between 0 and 2^24
  const float scale_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Dropout& dropout, const Node& node,
                                          Context& context) {
  return std::make_unique<DropoutOperation>(dropout, node, context);
}

}  // namespace muster::compute::cpu
