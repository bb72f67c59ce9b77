#include "trainer/compute/cuda/operation.h"

namespace muster::compute::cuda {
namespace {

class BatchNormalizationOperation : public Operation {
 public:
  BatchNormalizationOperation(const BatchNormalization& layer, const Node& node, Context& context)
      : context_(context),
        in_(context.value(node.inputs[0])),
        out_(context.value(node.output)),
        epsilon_(layer.epsilon),
        trainable_(node.trainable),
        columns_(static_cast<int64_t>(context.graph.layout.find(node.parameters[0]).count)),
        outer_(out_.width / columns_),
        gamma_(context.offset_of(node.parameters[0])),
        beta_(context.offset_of(node.parameters[1])),
        moving_mean_(context.offset_of(node.parameters[2])),
        moving_variance_(context.offset_of(node.parameters[3])),
        mean_(context.gpu, columns_),
        inverse_(context.gpu, columns_),
        sums_(context.gpu, columns_),
        squares_(context.gpu, columns_) {
    if (trainable_) context.reserve_sums(context.max_rows * outer_, columns_);
  }

  void forward(Program& program) override {
    program.add([this](const Step& step) {
      const bool batch = step.training && trainable_;
      if (batch) {
        measure(step);
      } else {
        context_.gpu.launch(InverseDeviation{columns_, step.parameters + moving_variance_, epsilon_,
                                             inverse_.data()});
      }
      context_.gpu.launch(Normalize{step.rows * outer_, columns_, in_.values(), mean(step),
                                    inverse_.data(), step.parameters + gamma_,
                                    step.parameters + beta_, out_.values()});
    });
  }

  void backward(Program& program) override {
    if (!out_.needs_gradient) return;
    const bool accumulate = in_.needs_gradient && Context::claim_gradient(in_);
    program.add([this, accumulate](const Step& step) {
      const int64_t rows = step.rows * outer_;
      if (!trainable_) {
        if (in_.needs_gradient)
          context_.gpu.launch(ScaleGradient{rows, columns_, out_.gradients(), inverse_.data(),
                                            step.parameters + gamma_, in_.gradients(), accumulate});
        return;
      }
      float* dbeta = step.gradients + beta_;
      float* dgamma = step.gradients + gamma_;
      float* parts = context_.parts();
      context_.gpu.launch(NormalizedProducts{rows, columns_, in_.values(), out_.gradients(),
                                             mean(step), inverse_.data(), parts});
      context_.sum_parts(rows, columns_, parts, dbeta);
      context_.sum_parts(rows, columns_, parts + parts_of(rows) * columns_, dgamma);
      if (!in_.needs_gradient) return;
      context_.gpu.launch(NormalizeGradient{rows, columns_, in_.values(), out_.gradients(),
                                            mean(step), inverse_.data(), step.parameters + gamma_,
                                            dbeta, dgamma, in_.gradients(), accumulate});
    });
  }

 private:
  void measure(const Step& step) {
    const int64_t rows = step.rows * outer_;
    context_.sum_columns(rows, columns_, in_.values(), sums_.data());
    context_.gpu.launch(CentredSquares{rows, columns_, in_.values(), sums_.data(),
                                       1.0f / static_cast<float>(rows), context_.parts()});
    context_.sum_parts(rows, columns_, context_.parts(), squares_.data());
    context_.gpu.launch(FinishStatistics{
        rows, step.rows, columns_, sums_.data(), squares_.data(), epsilon_, mean_.data(),
        inverse_.data(), step.gradients + moving_mean_, step.gradients + moving_variance_});
  }

  const float* mean(const Step& step) const {
    return step.training && trainable_ ? mean_.data() : step.parameters + moving_mean_;
  }

  Context& context_;
  ValueMemory& in_;
  ValueMemory& out_;
  const float epsilon_;
  const bool trainable_;
  const int64_t columns_, outer_;
  const int64_t gamma_, beta_, moving_mean_, moving_variance_;  // offsets
  GpuArray<float> mean_, inverse_, sums_, squares_;
};

}  // namespace

std::unique_ptr<Operation> make_operation(const BatchNormalization& layer, const Node& node,
                                          Context& context) {
  return std::make_unique<BatchNormalizationOperation>(layer, node, context);
}

}  // namespace muster::compute::cuda
