#include "trainer/compute/cpu/program/normalization_parameters.h"

namespace muster::compute::cpu {

NormalizationParameters::NormalizationParameters(const BatchNormalization& layer, const Node& node,
                                                 const Context& context)
    : context_(context),
      epsilon_(layer.epsilon),
      momentum_(layer.momentum),
      trainable_(node.trainable) {
  const auto& tensors = context.graph.layout.tensors();
  for (size_t i = 0; i < 4; ++i) {
    tensors_[i] = context.tensor_index(node.parameters[i]);
    offsets_[i] = tensors[static_cast<size_t>(tensors_[i])].offset;
  }
  features_ = static_cast<int64_t>(tensors[static_cast<size_t>(tensors_[kGamma])].count);
}

void NormalizationParameters::keep_statistics(const Step& step, int64_t places, int64_t begin,
                                              int64_t end, const float* mean,
                                              const float* variance) const {
  const float rows = static_cast<float>(step.rows);
  const float count = static_cast<float>(step.rows * places);
  const float corrected = count > 1 ? rows * count / (count - 1) : rows;
  float* means = gradient(step, kMean) + begin;
  float* variances = gradient(step, kVariance) + begin;
  for (int64_t i = 0; i < end - begin; ++i) {
    means[i] = rows * mean[i];
    variances[i] = corrected * variance[i];
  }
  if (step.rules == nullptr) return;
  for (const Tensor which : {kMean, kVariance}) {
    context_.kernels.update_state(end - begin, momentum_, 1.0f / rows,
                                  step.parameters + offset(which) + begin,
                                  gradient(step, which) + begin);
  }
}

void NormalizationParameters::update(const Step& step, int64_t begin, int64_t end) const {
  update_piece(context_, step, tensors_[kGamma], begin, end);
  update_piece(context_, step, tensors_[kBeta], begin, end);
}

}  // namespace muster::compute::cpu
