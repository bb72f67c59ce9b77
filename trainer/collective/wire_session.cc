#include "trainer/collective/wire_session.h"

#include <algorithm>
#include <utility>

#include "common/program/log.h"
#include "common/program/stopwatch.h"
#include "trainer/collective/state_digest.h"

namespace muster::collective {

Session::Outcome outcome_of(const Unavailable& error, const Session::Watch& watch) {
  const bool stopped = watch.stop.stop_requested();
  if (!stopped && !watch.over()) log::info(error.what());
  return stopped ? Session::Outcome::interrupted : Session::Outcome::over;
}

void compare_states(WireGroup& group, uint32_t digest, const Session::Watch& watch,
                    Session::StepResult& result) {
  try {
    result.odd = odd_members(group.exchange(digest, watch));
    result.compared = result.odd.empty();
    if (!result.compared) result.outcome = Session::Outcome::differs;
  } catch (const WireGroup::Broken& error) {
    outcome_of(error, watch);  // the step is made; the next one finds the connections closed
  }
}

WireSession::WireSession(std::unique_ptr<WireGroup> group, const GroupShape& shape, int member,
                         State state, uint64_t step, const compute::Optimizer& optimizer)
    : nodes_(shape.nodes_of(member)),
      state_(std::move(state)),
      slots_(state_.begin() + 1, state_.end()),
      step_(step),
      optimizer_(optimizer),
      group_(std::move(group)) {}

Session::StepResult WireSession::step(uint64_t step, const Contribution& contribution,
                                      const Arguments& arguments, const Watch& watch) {
  StepResult result;
  try {
    result.sums = group_->all_reduce(step, contribution, watch);
    result.note = group_->note();
    result.bytes = group_->moved_in_steps() - std::exchange(moved_, group_->moved_in_steps());
  } catch (const WireGroup::Broken& error) {
    result.outcome = outcome_of(error, watch);
    return result;
  }
  const Stopwatch updating;
  optimizer_.apply({0, state_[0].size()}, arguments(result.sums), state_[0], group_->sum(), slots_);
  result.update_seconds = updating.seconds();
  ++step_;
  if (group_->compare()) compare_states(*group_, digest_of(state_), watch, result);
  return result;
}

void WireSession::copy(std::span<float> parameters, std::span<const std::span<float>> slots,
                       const Arguments&) {
  std::copy(state_[0].begin(), state_[0].end(), parameters.begin());
  for (size_t i = 0; i < slots.size(); ++i)
    std::copy(slots_[i].begin(), slots_[i].end(), slots[i].begin());
}

}  // namespace muster::collective
