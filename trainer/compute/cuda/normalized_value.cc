#include "trainer/compute/cuda/normalized_value.h"

#include "trainer/compute/cuda/context.h"

namespace muster::compute::cuda {
NormalizationStep::NormalizationStep(Context& context, const Node& node, Bounds bounds,
                                     int64_t width)
    : context_(context),
      epsilon_(std::get<BatchNormalization>(node.kind).epsilon),
      trainable_(node.trainable),
      bounds_(bounds),
      columns_(static_cast<int64_t>(context.graph.layout.find(node.parameters[0]).count)),
      places_(width / columns_),
      gamma_(context.offset_of(node.parameters[0])),
      beta_(context.offset_of(node.parameters[1])),
      moving_mean_(context.offset_of(node.parameters[2])),
      moving_variance_(context.offset_of(node.parameters[3])),
      scales_(context.gpu, 6 * columns_) {
  if (trainable_) {
    const int64_t rows = context.max_rows * places_;
    for (const bool half : {false, true})
      context.reserve_parts({rows, columns_, wide_pack_of(columns_, half)}, 2);
  }
}

ColumnScales NormalizationStep::scales() const {
  float* at = scales_.data();
  const int64_t n = columns_;
  return {at, at + n, at + 2 * n, at + 3 * n, at + 4 * n, at + 5 * n};
}

void NormalizationStep::forward(const Step& step, Numbers z) const {
  const float* gamma = step.parameters + gamma_;
  const float* beta = step.parameters + beta_;
  if (!step.training || !trainable_) {
    context_.gpu.launch(FixedScales{columns_, step.parameters + moving_mean_,
                                    step.parameters + moving_variance_, epsilon_, gamma, beta,
                                    scales()});
    return;
  }
  const int64_t rows = step.rows * places_;
  context_.gpu.launch(PartStatistics{rows, columns_, z, context_.parts()});
  context_.gpu.launch(JoinStatistics{
      rows, step.rows, columns_, wide_pack_of(columns_, z, z), context_.parts(), epsilon_, gamma,
      beta, scales(), step.gradients + moving_mean_, step.gradients + moving_variance_});
}

void NormalizationStep::backward(const Step& step, Numbers z, Numbers dy, Numbers dz,
                                 bool accumulate) const {
  const int64_t rows = step.rows * places_;
  ColumnScales scales = this->scales();
  if (trainable_) {
    context_.gpu.launch(PartGradients{rows, columns_, z, dy, scales, bounds_, context_.parts()});
    context_.gpu.launch(JoinGradients{rows, columns_, wide_pack_of(columns_, z, dy),
                                      context_.parts(), scales, step.gradients + gamma_,
                                      step.gradients + beta_});
  } else {
    scales.slope = scales.offset = nullptr;
  }
  if (dz.data() != nullptr)
    context_.gpu.launch(NormalizedGradient{rows, columns_, z, dy, scales, bounds_, dz, accumulate});
}

Reader NormalizationStep::reader(Numbers z) const {
  const ColumnScales found = scales();
  return {z, found.scale, found.shift, bounds_};
}

NormalizedValue::NormalizedValue(Context& context, const Fusion& fusion, const ValueMemory& memory)
    : memory_(memory),
      normalization_(context, *fusion.normalization, {fusion.low(), fusion.high()}, memory.width) {}

void NormalizedValue::forward(const Step& step) const {
  normalization_.forward(step, memory_.numbers());
}

void NormalizedValue::backward(const Step& step, Numbers dz) const {
  normalization_.backward(step, memory_.numbers(), memory_.gradient_numbers(), dz, false);
}

Reader NormalizedValue::reader() const {
  return normalization_.reader(memory_.numbers());
}

}  // namespace muster::compute::cuda
