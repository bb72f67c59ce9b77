#include "trainer/loop/batches/gradient_sum.h"

#include <algorithm>

#include "common/threads/watched_work.h"

namespace muster::loop {

compute::LossSums GradientSum::compute(const Work& work, Feed& feed, compute::PlacedFloats sum,
                                       const compute::Engine::OnComplete& on_complete) {
  if (work.batches() == 1) return engine_.compute_gradients(feed.batch(work), sum, on_complete);
  compute::LossSums sums = engine_.compute_gradients(feed.batch(work), sum);
  const std::span<float> total = sum.host();
  one_.resize(total.size());
  for (int i = 1; i < work.batches(); ++i) {
    const compute::Batch& batch = feed.batch(work, i);
    if (batch.rows == 0) continue;  // the batch had to be taken, because the feed had predicted it
    WatchedWork::beat();
    sums += engine_.compute_gradients(batch, one_);
    std::transform(total.begin(), total.end(), one_.begin(), total.begin(), std::plus<>());
  }
  return sums;
}

}  // namespace muster::loop
