#include <algorithm>

#include "trainer/compute/cpu/layers/sliding.h"
#include "trainer/compute/cpu/program/operation.h"

namespace muster::compute::cpu {
namespace {

using PoolKernel = void (*)(const Pool&);

class PoolOperation : public Operation {
 public:
  PoolOperation(const Window& window, PoolKernel forward, PoolKernel gradient, const Node& node,
                Context& context)
      : name_(node.name),
        context_(context),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        sliding_(sliding_of(window, context.graph, node.inputs[0])),
        forward_(forward),
        gradient_(gradient) {}

  void forward(Program& program) override {
    program.add(name_, {reads(in_.data, Share::all), writes(out_.data, Share::all)},
                [this](const Step& step, TeamThread thread) {
                  for_lines(sliding_, step.rows, thread,
                            [&](const Lines& lines) { forward_(pool(lines)); });
                });
  }

  void backward(Program& program) override {
    if (!in_.needs_gradient) return;
    const bool accumulate = context_.claim_gradient(in_);
    program.add(name_ + " gradient",
                {reads(in_.data, Share::rows), reads(out_.data, Share::rows),
                 reads(out_.gradient, Share::rows), writes(in_.gradient, Share::rows)},
                [this, accumulate](const Step& step, TeamThread thread) {
                  for (int64_t row = thread.begin(step.rows); row < thread.end(step.rows); ++row) {
                    Pool p = pool({row, 0, sliding_.out_height});
                    p.dy = context_.arena.floats(out_.gradient) + row * out_.stride;
                    p.dx = context_.arena.floats(in_.gradient) + row * in_.stride;
                    if (!accumulate) std::fill_n(p.dx, in_.width, 0.0f);
                    gradient_(p);
                  }
                });
  }

 private:
  Pool pool(const Lines& lines) const {
    Pool p{sliding_, lines.begin, lines.end};
    p.x = context_.arena.floats(in_.data) + lines.sample * in_.stride;
    p.y = context_.arena.floats(out_.data) + lines.sample * out_.stride;
    return p;
  }

  const std::string name_;
  Context& context_;
  ValueBlocks& in_;
  ValueBlocks& out_;
  const Sliding sliding_;
  const PoolKernel forward_, gradient_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const MaxPool& pool, const Node& node, Context& context) {
  const Kernels& k = context.kernels;
  return std::make_unique<PoolOperation>(pool.window, k.max_pool, k.max_pool_gradient, node,
                                         context);
}

std::unique_ptr<Operation> make_operation(const AveragePool& pool, const Node& node,
                                          Context& context) {
  const Kernels& k = context.kernels;
  return std::make_unique<PoolOperation>(pool.window, k.average_pool, k.average_pool_gradient, node,
                                         context);
}

std::unique_ptr<Operation> make_operation(const GlobalAveragePool&, const Node& node,
                                          Context& context) {
  return make_operation(AveragePool{whole_image(context.graph, node.inputs[0])}, node, context);
}

}  // namespace muster::compute::cpu
