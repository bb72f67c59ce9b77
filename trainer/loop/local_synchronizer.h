#pragma once

#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/compute/aligned.h"
#include "trainer/loop/replica_gradients.h"
#include "trainer/loop/synchronizer.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// A process by itself: the engine trains in place; several devices add up their gradients. Its bits
// are those of a collective of one member. A step allocates nothing and takes no lock.
class LocalSynchronizer : public Synchronizer {
 public:
  // `from`: the checkpoint to go on from; without one, the initializers. Throws as Store::load
  // does.
  LocalSynchronizer(Assembly& assembly, const checkpoint::Store::Found* from, uint64_t generation);

  bool start(std::stop_token) override { return true; }
  std::optional<Work> next() override;
  StepResult step(const Work& work, Feed& feed, std::stop_token stop) override;
  const checkpoint::Position& position() const override { return position_; }
  uint64_t generation() const override { return generation_; }
  void evaluated(const checkpoint::Evaluations& evaluations) override {
    position_.evaluations = evaluations;
  }
  std::unique_ptr<Snapshot> snapshot() override;

 private:
  compute::LossSums compute();
  void update(const compute::UpdateArguments& arguments);
  Assembly& assembly_;
  ReplicaGradients gradients_;
  const compute::TreeArithmetic arithmetic_;
  std::vector<compute::LossSums> sums_;               // of each device
  std::vector<std::vector<std::span<float>>> parts_;  // of the slots, of each device
  std::vector<compute::Floats> slots_;
  std::vector<std::span<float>> slot_views_;
  checkpoint::Position position_;
  uint64_t generation_;
};

}  // namespace muster::loop
