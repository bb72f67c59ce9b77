#include "trainer/loop/gradient_sum.h"

#include <algorithm>

namespace muster::loop {

compute::LossSums GradientSum::compute(const Work& work, Feed& feed) {
  compute::LossSums sums = engine_.compute_gradients(feed.batch(work));
  const std::span<const float> gradients = engine_.gradients();
  values_ = gradients;
  if (work.batches == 1) return sums;
  sum_.assign(gradients.begin(), gradients.end());
  for (int i = 1; i < work.batches; ++i) {
    const compute::Batch& batch = feed.batch(work, i);
    if (batch.rows == 0) break;
    sums += engine_.compute_gradients(batch);
    std::transform(sum_.begin(), sum_.end(), gradients.begin(), sum_.begin(), std::plus<>());
  }
  values_ = sum_;
  return sums;
}

}  // namespace muster::loop
