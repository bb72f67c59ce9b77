#pragma once

#include <memory>
#include <vector>

#include "common/error.h"
#include "trainer/collective/session.h"
#include "trainer/collective/wire_group.h"

namespace muster::collective {

// Returns the outcome of a step that ended with `error` before it was made; logs the error unless
// the watch says why.
Session::Outcome outcome_of(const Unavailable& error, const Session::Watch& watch);
// Compares the members' states after the step of `result` by their digests.
void compare_states(WireGroup& group, uint32_t digest, const Session::Watch& watch,
                    Session::StepResult& result);

// The session of members that are connected by TCP: each member holds the whole state and makes
// every update.
class WireSession : public HostSession {
 public:
  // Parameters, then slots.
  using State = std::vector<compute::Floats>;

  // `group` must be connected. `state` is the state of `step`. The optimizer must outlive the
  // session.
  WireSession(std::unique_ptr<WireGroup> group, const GroupShape& shape, int member, State state,
              uint64_t step, const compute::Optimizer& optimizer);

  std::span<float> parameters() override { return state_[0]; }
  std::span<const float> slot(size_t index) const override { return slots_[index]; }
  std::span<const compute::Subtree> nodes() const override { return nodes_; }
  std::span<float> gradients(size_t node) override { return group_->own(node); }
  void complete(size_t end) override { group_->complete(end); }
  StepResult step(uint64_t step, const Contribution& contribution, const Arguments& arguments,
                  const Watch& watch) override;
  ComputingTime time(int member) const override { return group_->time(member); }
  Settled settle() override { return {step_, {}, {}}; }
  void copy(std::span<float> parameters, std::span<const std::span<float>> slots,
            const Arguments& arguments) override;

 private:
  const std::vector<compute::Subtree> nodes_;
  State state_;
  std::vector<std::span<float>> slots_;
  uint64_t step_;
  uint64_t moved_ = 0;  // bytes that the results so far have told
  const compute::Optimizer& optimizer_;
  // The last member: its thread may still receive into the state when this object ends.
  const std::unique_ptr<WireGroup> group_;
};

}  // namespace muster::collective
