#include "trainer/compute/cuda/operation.h"

namespace muster::compute::cuda {
namespace {

class DenseOperation : public Operation {
 public:
  DenseOperation(const Dense& dense, const Node& node, Context& context)
      : context_(context),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        activation_(dense.activation),
        trainable_(node.trainable),
        units_(dense.units),
        features_(in_.width),
        kernel_(context.offset_of(node.parameters[0])),
        bias_(dense.use_bias ? context.offset_of(node.parameters[1]) : -1) {
    if (trainable_ && bias_ >= 0 && !is_small(context.max_rows))
      context.reserve_column_sums(context.max_rows, units_);
  }

  void forward(Program& program) override {
    program.add([this](const Step& step) {
      if (is_small(step.rows)) return forward_small(step);
      float* y = out_.values();
      context_.gpu.multiply({step.rows, units_, features_, in_.values(), features_, false,
                             step.parameters + kernel_, units_, false, y, units_});
      const float* bias = bias_ < 0 ? nullptr : step.parameters + bias_;
      if (bias != nullptr || activation_ != Activation::linear)
        context_.gpu.launch(BiasActivation{step.rows, units_, y, units_, bias, activation_, y});
    });
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient) return;
    const bool accumulate = in_.needs_gradient && Context::claim_gradient(in_);
    program.add([this, accumulate](const Step& step) {
      if (is_small(step.rows)) return backward_small(step, accumulate);
      float* dy = out_.gradients();
      if (activation_ != Activation::linear)
        context_.gpu.launch(
            ActivationGradient{step.rows * units_, activation_, out_.values(), dy, dy, false});
      if (in_.needs_gradient)
        context_.gpu.multiply({step.rows, features_, units_, dy, units_, false,
                               step.parameters + kernel_, units_, true, in_.gradients(), features_,
                               accumulate});
      if (!trainable_) return;
      context_.gpu.multiply({features_, units_, step.rows, in_.values(), features_, true, dy,
                             units_, false, step.gradients + kernel_, units_});
      if (bias_ >= 0) context_.sum_columns(step.rows, units_, dy, step.gradients + bias_);
    });
  }

 private:
  bool is_small(int64_t rows) const { return is_small_dense(rows, features_, units_); }

  void forward_small(const Step& step) const {
    context_.gpu.launch(
        DenseForward{static_cast<int32_t>(step.rows), static_cast<int32_t>(features_),
                     static_cast<int32_t>(units_), in_.values(), step.parameters + kernel_,
                     bias_ < 0 ? nullptr : step.parameters + bias_, activation_, out_.values()});
  }

  void backward_small(const Step& step, bool accumulate) const {
    if (!trainable_ && !in_.needs_gradient) return;
    context_.gpu.launch(DenseBackward{
        static_cast<int32_t>(step.rows), static_cast<int32_t>(features_),
        static_cast<int32_t>(units_), activation_, in_.values(), step.parameters + kernel_,
        out_.values(), out_.gradients(), trainable_ ? step.gradients + kernel_ : nullptr,
        trainable_ && bias_ >= 0 ? step.gradients + bias_ : nullptr,
        in_.needs_gradient ? in_.gradients() : nullptr, accumulate});
  }

  Context& context_;
  ValueMemory& in_;
  ValueMemory& out_;
  const Activation activation_;
  const bool trainable_;
  const int64_t units_, features_;
  const int64_t kernel_, bias_;  // offsets; -1: there is no bias
};

}  // namespace

std::unique_ptr<Operation> make_operation(const Dense& dense, const Node& node, Context& context) {
  return std::make_unique<DenseOperation>(dense, node, context);
}

}  // namespace muster::compute::cuda
