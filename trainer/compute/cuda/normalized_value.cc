#include "trainer/compute/cuda/normalized_value.h"

#include <limits>

#include "trainer/compute/cuda/context.h"

namespace muster::compute::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Bounds bounds_of(const Fusion& fusion) {
  if (fusion.activation == nullptr) return {-kInfinity, kInfinity};
  const Activation activation = std::get<ActivationLayer>(fusion.activation->kind).activation;
  return {0.0f, activation == Activation::relu6 ? 6.0f : kInfinity};
}

}  // namespace

NormalizedValue::NormalizedValue(Context& context, const Fusion& fusion, const ValueMemory& memory)
    : context_(context),
      memory_(memory),
      epsilon_(std::get<BatchNormalization>(fusion.normalization->kind).epsilon),
      trainable_(fusion.normalization->trainable),
      bounds_(bounds_of(fusion)),
      columns_(static_cast<int64_t>(
          context.graph.layout.find(fusion.normalization->parameters[0]).count)),
      places_(memory.width / columns_),
      gamma_(context.offset_of(fusion.normalization->parameters[0])),
      beta_(context.offset_of(fusion.normalization->parameters[1])),
      moving_mean_(context.offset_of(fusion.normalization->parameters[2])),
      moving_variance_(context.offset_of(fusion.normalization->parameters[3])),
      scales_(context.gpu, 6 * columns_) {
  if (trainable_) context.reserve_sums(context.max_rows * places_, columns_);
}

ColumnScales NormalizedValue::scales() const {
  float* at = scales_.data();
  const int64_t n = columns_;
  return {at, at + n, at + 2 * n, at + 3 * n, at + 4 * n, at + 5 * n};
}

void NormalizedValue::forward(const Step& step) const {
  const float* gamma = step.parameters + gamma_;
  const float* beta = step.parameters + beta_;
  if (!step.training || !trainable_) {
    context_.gpu.launch(FixedScales{columns_, step.parameters + moving_mean_,
                                    step.parameters + moving_variance_, epsilon_, gamma, beta,
                                    scales()});
    return;
  }
  const int64_t rows = step.rows * places_;
  context_.gpu.launch(PartStatistics{rows, columns_, memory_.numbers(), context_.parts()});
  context_.gpu.launch(JoinStatistics{rows, step.rows, columns_, context_.parts(), epsilon_, gamma,
                                     beta, scales(), step.gradients + moving_mean_,
                                     step.gradients + moving_variance_});
}

void NormalizedValue::backward(const Step& step, Numbers dz) const {
  const int64_t rows = step.rows * places_;
  const Numbers z = memory_.numbers(), dy = memory_.gradient_numbers();
  ColumnScales scales = this->scales();
  if (trainable_) {
    context_.gpu.launch(PartGradients{rows, columns_, z, dy, scales, bounds_, context_.parts()});
    context_.gpu.launch(JoinGradients{rows, columns_, context_.parts(), scales,
                                      step.gradients + gamma_, step.gradients + beta_});
  } else {
    scales.slope = scales.offset = nullptr;
  }
  context_.gpu.launch(NormalizedGradient{rows, columns_, z, dy, scales, bounds_, dz});
}

Reader NormalizedValue::reader() const {
  const ColumnScales found = scales();
  return {memory_.numbers(), found.scale, found.shift, bounds_};
}

}  // namespace muster::compute::cuda
