#pragma once

#include <span>

#include "trainer/compute/aligned.h"
#include "trainer/compute/hosted_engine.h"
#include "trainer/loop/batches/feed.h"
#include "trainer/loop/batches/workload.h"

namespace muster::loop {

// Gradient sums of a piece of work: those of one batch as the engine has them, those of several
// (gradient accumulation) added up in order.
class GradientSum {
 public:
  // The engine must outlive it.
  explicit GradientSum(compute::Engine& engine) : engine_(engine) {}

  // The parameters to compute with: see HostedEngine.
  void load(std::span<float> parameters) { engine_.load(parameters); }
  void release() { engine_.release(); }
  // Into `sum`: layout().size() floats. `on_complete` is told of one batch's only.
  compute::LossSums compute(const Work& work, Feed& feed, std::span<float> sum,
                            const compute::Engine::OnComplete& on_complete = {});

 private:
  compute::HostedEngine engine_;
  compute::Floats one_;  // only for several batches
};

}  // namespace muster::loop
