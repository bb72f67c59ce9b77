#pragma once

#include <memory>
#include <vector>

#include "trainer/collective/session.h"
#include "trainer/collective/slice_update.h"

namespace muster::collective {

// The session of members that share one host's memory: see SharedState.
class SharedSession : public HostSession {
 public:
  // `member` is this process's number in the state. The optimizer must outlive the session.
  SharedSession(std::unique_ptr<SharedState> state, int member,
                const compute::Optimizer& optimizer);

  std::span<float> parameters() override { return state_->parameters(); }
  std::span<const float> slot(size_t index) const override { return state_->slot(index); }
  std::span<const compute::Subtree> nodes() const override { return nodes_; }
  std::span<float> gradients(size_t node) override { return state_->sum(first_sum_ + node); }
  StepResult step(uint64_t step, const Contribution& contribution, const Arguments& arguments,
                  const Watch& watch) override;
  ComputingTime time(int member) const override { return state_->time(member); }
  Settled settle() override;
  void copy(std::span<float> parameters, std::span<const std::span<float>> slots,
            const Arguments& arguments) override;

 private:
  template <class Ready>
  Outcome wait(const Watch& watch, Ready ready) const;

  const std::unique_ptr<SharedState> state_;
  const int member_;
  const std::vector<compute::Subtree> nodes_;
  size_t first_sum_ = 0;
  SliceUpdate update_;
};

}  // namespace muster::collective
