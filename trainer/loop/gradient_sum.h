#pragma once

#include <span>

#include "trainer/compute/aligned.h"
#include "trainer/compute/engine.h"
#include "trainer/loop/feed.h"
#include "trainer/loop/workload.h"

namespace muster::loop {

// Gradient sums of a piece of work: those of one batch as the engine has them, those of several
// (gradient accumulation) added up in order.
class GradientSum {
 public:
  explicit GradientSum(compute::Engine& engine) : engine_(engine) {}

  // Into the engine's gradients. `on_complete` is told of one batch's only.
  compute::LossSums compute(const Work& work, Feed& feed,
                            const compute::Engine::OnComplete& on_complete = {});
  // layout().size() floats; valid until the next call.
  std::span<const float> values() const { return engine_.gradients(); }

 private:
  compute::Engine& engine_;
  compute::Floats one_;  // only for several batches
};

}  // namespace muster::loop
