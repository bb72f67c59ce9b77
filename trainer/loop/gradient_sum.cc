#include "trainer/loop/gradient_sum.h"

#include <algorithm>

namespace muster::loop {

compute::LossSums GradientSum::compute(const Work& work, Feed& feed,
                                       const compute::Engine::OnComplete& on_complete) {
  if (work.batches() == 1) return engine_.compute_gradients(feed.batch(work), on_complete);
  compute::LossSums sums = engine_.compute_gradients(feed.batch(work));
  const std::span<float> sum = engine_.gradients();
  one_.resize(sum.size());
  engine_.use(engine_.parameters(), one_);
  for (int i = 1; i < work.batches(); ++i) {
    const compute::Batch& batch = feed.batch(work, i);
    if (batch.rows == 0) continue;  // taken all the same: the feed foresaw it
    sums += engine_.compute_gradients(batch);
    std::transform(sum.begin(), sum.end(), one_.begin(), sum.begin(), std::plus<>());
  }
  engine_.use(engine_.parameters(), sum);
  return sums;
}

}  // namespace muster::loop
