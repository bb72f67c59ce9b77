#include "trainer/collective/wire_session.h"

#include <algorithm>

#include "common/log.h"

namespace muster::collective {

WireSession::WireSession(std::unique_ptr<WireGroup> group, const GroupShape& shape, int member,
                         State state, uint64_t step, const compute::Optimizer& optimizer)
    : group_(std::move(group)),
      nodes_(shape.nodes_of(member)),
      state_(std::move(state)),
      slots_(state_.begin() + 1, state_.end()),
      step_(step),
      optimizer_(optimizer) {}

Session::StepResult WireSession::step(uint64_t step, const Contribution& contribution,
                                      const Arguments& arguments, const Watch& watch) {
  StepResult result;
  try {
    result.sums = group_->all_reduce(step, contribution, watch);
    result.note = group_->note();
  } catch (const WireGroup::Broken& error) {
    const bool stopped = watch.stop.stop_requested();
    if (!stopped && !watch.over()) log::info(error.what());
    result.outcome = stopped ? Outcome::interrupted : Outcome::over;
    return result;
  }
  optimizer_.apply({0, state_[0].size()}, arguments(result.sums), state_[0], group_->sum(), slots_);
  ++step_;
  return result;
}

void WireSession::copy(std::span<float> parameters, std::span<const std::span<float>> slots,
                       const Arguments&) {
  std::copy(state_[0].begin(), state_[0].end(), parameters.begin());
  for (size_t i = 0; i < slots.size(); ++i)
    std::copy(slots_[i].begin(), slots_[i].end(), slots[i].begin());
}

}  // namespace muster::collective
