#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "trainer/compute/engine_group.h"
#include "trainer/loop/batches/replica_gradients.h"
#include "trainer/loop/synchronizers/synchronizer.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// The synchronizer of a process that trains alone. One device trains in place, with parameters and
// slots in its own memory; a device that can train ahead begins the next step before the current
// step is done. If several devices or batches make a step, the devices add up their gradients and
// hold the state if they can (compute::EngineGroup); otherwise the host does. The bits are the same
// as in a collective of one member. A step of one CPU, or on the host, allocates nothing and takes
// no lock.
class LocalSynchronizer : public Synchronizer {
 public:
  // `from` is the checkpoint to resume from; if null, training starts from the initializers. Throws
  // the errors of checkpoint::load.
  LocalSynchronizer(Assembly& assembly, const checkpoint::Store::Found* from, uint64_t generation);

  ~LocalSynchronizer() override;

  bool start(std::stop_token stop) override {
    stop_ = std::move(stop);
    return true;
  }
  bool has_next() override { return !assembly_.workload->finished(position()); }
  bool is_at_position() const override { return begun_ == 0; }
  StepResult step() override;
  uint64_t generation() const override { return generation_; }
  void read_weights(std::span<float> to) override;
  std::unique_ptr<Snapshot> snapshot() override;

 private:
  // The host's memory and helpers for making the updates.
  struct Host {
    explicit Host(const Assembly& assembly);
    compute::HostMemory parameters;
    compute::Floats sum;  // sum of the gradients
    ReplicaGradients gradients;
    const compute::TreeArithmetic arithmetic;
    std::vector<compute::LossSums> sums;               // loss sums of each device
    std::vector<std::vector<std::span<float>>> parts;  // the slots' part of each device
    const std::vector<compute::Range> shares;  // the range that each device's thread updates
  };

  // Devices that make updates without the host.
  struct Group {
    std::unique_ptr<compute::EngineGroup> engines;
    std::unique_ptr<compute::EngineGroup::Link> link;
    std::unique_ptr<ReplicaGradients> gradients;
    std::vector<compute::LossSums> sums;  // loss sums of each device
  };

  std::optional<Group> make_group() const;
  void make_slots();
  compute::Memory& parameters();
  void begin_state(const checkpoint::Store::Found* from);
  compute::UpdateArguments arguments_at(const checkpoint::Position& position) const;
  StepResult step_ahead();
  void begin_step();
  uint64_t end_of_run() const;
  StepResult step_on_devices(compute::UpdateArguments arguments);
  StepResult step_on_host(compute::UpdateArguments arguments);
  void update_on_host(const compute::UpdateArguments& arguments);

  Assembly& assembly_;
  std::vector<std::unique_ptr<compute::Memory>> slots_;  // empty with a group
  std::vector<compute::Memory*> slot_views_;
  // If neither is set, the engine makes the updates.
  std::optional<Group> group_;
  std::optional<Host> host_;
  const uint64_t generation_;
  // Steps that are begun ahead: the number of steps that are not done, the position of the next
  // step to begin, and the step at which all must be done.
  std::stop_token stop_;
  int begun_ = 0;
  checkpoint::Position next_;
  uint64_t run_end_ = 0;
};

}  // namespace muster::loop
