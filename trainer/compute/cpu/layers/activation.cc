#include "trainer/compute/cpu/layers/activation.h"

#include "trainer/compute/cpu/program/operation.h"

namespace muster::compute::cpu {
namespace {

class ActivationOperation : public Operation {
 public:
  ActivationOperation(const ActivationLayer& layer, const Node& node, Context& context)
      : name_(node.name),
        context_(context),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        activation_(layer.activation),
        // A softmax needs whole rows.
        share_(activation_ == Activation::softmax ? Share::rows : Share::columns) {}

  void forward(Program& program) override {
    program.add(name_ + " forward", {reads(in_.data, share_), writes(out_.data, share_)},
                [this](const Step& step, TeamThread thread) {
                  if (share_ == Share::rows) {
                    softmax_forward(step, thread);
                  } else {
                    forward_columns(step, thread);
                  }
                });
  }

  void backward(Program& program) override {
    if (!in_.needs_gradient) return;
    const bool accumulate = context_.claim_gradient(in_);
    program.add(
        name_ + " backward",
        {reads(out_.data, share_), reads(out_.gradient, share_), writes(in_.gradient, share_)},
        [this, accumulate](const Step& step, TeamThread thread) {
          if (share_ == Share::rows) {
            softmax_backward(step, thread, accumulate);
          } else {
            backward_columns(step, thread, accumulate);
          }
        });
  }

 private:
  float* at(Block block, int64_t row, int64_t column) const {
    return context_.arena.floats(block) + row * out_.stride + column;
  }

  void forward_columns(const Step& step, TeamThread thread) const {
    const Kernels& k = context_.kernels;
    const int64_t begin = thread.begin(out_.width, kLine);
    const int64_t n = thread.end(out_.width, kLine) - begin;
    float* y = at(out_.data, 0, begin);
    k.copy(step.rows, n, at(in_.data, 0, begin), in_.stride, y, out_.stride, false);
    activate(k, activation_, step.rows, n, y, out_.stride, nullptr);
  }

  void backward_columns(const Step& step, TeamThread thread, bool accumulate) const {
    const Kernels& k = context_.kernels;
    const int64_t begin = thread.begin(out_.width, kLine);
    const int64_t n = thread.end(out_.width, kLine) - begin;
    const float* y = at(out_.data, 0, begin);
    const float* dy = at(out_.gradient, 0, begin);
    float* dx = at(in_.gradient, 0, begin);
    activation_gradient(k, activation_, step.rows, n, y, out_.stride, dy, dx, accumulate);
  }

  void softmax_forward(const Step& step, TeamThread thread) const {
    for (int64_t row = thread.begin(step.rows); row < thread.end(step.rows); ++row) {
      context_.kernels.softmax(out_.width, at(in_.data, row, 0), at(out_.data, row, 0), -1);
    }
  }

  void softmax_backward(const Step& step, TeamThread thread, bool accumulate) const {
    for (int64_t row = thread.begin(step.rows); row < thread.end(step.rows); ++row) {
      context_.kernels.softmax_gradient(out_.width, at(out_.data, row, 0),
                                        at(out_.gradient, row, 0), at(in_.gradient, row, 0),
                                        accumulate);
    }
  }

  const std::string name_;
  Context& context_;
  ValueBlocks& in_;
  ValueBlocks& out_;
  const Activation activation_;
  const Share share_;
};

}  // namespace

void activate(const Kernels& kernels, Activation activation, int64_t rows, int64_t columns,
              float* y, int64_t ldy, const float* bias) {
  switch (activation) {
    case Activation::relu:
      return kernels.bias_relu(rows, columns, y, ldy, bias);
    case Activation::relu6:
      return kernels.bias_relu6(rows, columns, y, ldy, bias);
    case Activation::sigmoid:
      return kernels.bias_sigmoid(rows, columns, y, ldy, bias);
    default:
      return kernels.bias_linear(rows, columns, y, ldy, bias);
  }
}

void activation_gradient(const Kernels& kernels, Activation activation, int64_t rows,
                         int64_t columns, const float* y, int64_t ldy, const float* dy, float* dx,
                         bool accumulate) {
  switch (activation) {
    case Activation::relu:
      return kernels.relu_gradient(rows, columns, y, ldy, dy, dx, accumulate);
    case Activation::relu6:
      return kernels.relu6_gradient(rows, columns, y, ldy, dy, dx, accumulate);
    case Activation::sigmoid:
      return kernels.sigmoid_gradient(rows, columns, y, ldy, dy, dx, accumulate);
    default:
      return kernels.copy(rows, columns, dy, ldy, dx, ldy, accumulate);
  }
}

std::unique_ptr<Operation> make_operation(const ActivationLayer& layer, const Node& node,
                                          Context& context) {
  return std::make_unique<ActivationOperation>(layer, node, context);
}

}  // namespace muster::compute::cpu
