#pragma once

#include "trainer/compute/aligned.h"
#include "trainer/compute/hosted_engine.h"
#include "trainer/loop/batches/feed.h"
#include "trainer/loop/batches/workload.h"

namespace muster::loop {

// Computes the gradient sums of a piece of work: for one batch, the engine's gradient; for several
// batches (gradient accumulation), the sum of their gradients in order.
class GradientSum {
 public:
  // The engine must outlive this object.
  explicit GradientSum(compute::Engine& engine) : engine_(engine) {}

  // Sets the parameters to compute with; see HostedEngine.
  void load(compute::PlacedFloats parameters) { engine_.load(parameters); }
  void release() { engine_.release(); }
  // Writes the sum to `sum`, which has layout().size() floats; for several batches they must be in
  // host memory. Calls `on_complete` only if the work
  // is a single batch.
  compute::LossSums compute(const Work& work, Feed& feed, compute::PlacedFloats sum,
                            const compute::Engine::OnComplete& on_complete = {});

 private:
  compute::HostedEngine engine_;
  compute::Floats one_;  // only for several batches
};

}  // namespace muster::loop
