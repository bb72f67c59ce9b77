#pragma once

#include "trainer/compute/cpu/program/context.h"

namespace muster::compute::cpu {

// The four tensors of a batch normalization layer, and their updates in a step.
class NormalizationParameters {
 public:
  enum Tensor { kGamma, kBeta, kMean, kVariance };

  NormalizationParameters(const BatchNormalization& layer, const Node& node,
                          const Context& context);

  int64_t features() const { return features_; }
  float epsilon() const { return epsilon_; }
  bool trainable() const { return trainable_; }
  const float* of(const Step& step, Tensor which) const { return step.parameters + offset(which); }
  float* gradient(const Step& step, Tensor which) const { return step.gradients + offset(which); }

  // Keeps rows x mean and rows x variance of features [begin, end) as the gradients of the moving
  // statistics, and updates the moving statistics if the step trains. `mean` and `variance` are the
  // batch's, over `places` places of each sample, and begin with feature `begin`. The variance gets
  // Bessel's correction, because the moving statistics estimate the variance of the population. The
  // optimizer divides by the rows of all replicas.
  void keep_statistics(const Step& step, int64_t places, int64_t begin, int64_t end,
                       const float* mean, const float* variance) const;
  // Updates features [begin, end) of gamma and beta by their gradients, if the step trains.
  void update(const Step& step, int64_t begin, int64_t end) const;

 private:
  size_t offset(Tensor which) const { return offsets_[which]; }

  const Context& context_;
  const float epsilon_, momentum_;
  const bool trainable_;
  int64_t tensors_[4] = {};
  size_t offsets_[4] = {};
  int64_t features_ = 0;
};

}  // namespace muster::compute::cpu
