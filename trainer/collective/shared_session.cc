#include "trainer/collective/shared_session.h"

#include <cstring>

#include "common/program/stopwatch.h"

namespace muster::collective {

SharedSession::SharedSession(std::unique_ptr<SharedState> state, int member,
                             const compute::Optimizer& optimizer)
    : state_(std::move(state)),
      member_(member),
      nodes_(state_->shape().nodes_of(member)),
      update_(*state_, optimizer) {
  for (int before = 0; before < member; ++before)
    first_sum_ += state_->shape().nodes_of(before).size();
}

template <class Ready>
Session::Outcome SharedSession::wait(const Watch& watch, Ready ready) const {
  const std::stop_callback on_stop(watch.stop, [this] { state_->wake(); });
  for (;;) {
    if (state_->wait(ready, watch.stop, kGlance)) return ready() ? Outcome::ok : Outcome::over;
    if (watch.stop.stop_requested()) return Outcome::interrupted;
    if (watch.over()) return Outcome::over;
  }
}

Session::StepResult SharedSession::step(uint64_t step, const Contribution& contribution,
                                        const Arguments& arguments, const Watch& watch) {
  const compute::Subtree replicas = state_->shape().replicas_of(member_);
  for (int i = 0; i < replicas.size(); ++i)
    state_->set_sums(replicas.begin + i, contribution.sums[static_cast<size_t>(i)]);
  state_->set_time(member_, contribution.time);
  if (member_ == 0) state_->set_note(contribution.note);
  StepResult result;
  if (!state_->contribute(step)) {
    result.outcome = Outcome::over;
    return result;
  }
  result.outcome = wait(watch, [&] { return state_->all_contributed(step); });
  if (result.outcome != Outcome::ok) return result;
  result.sums = state_->sums();
  result.note = state_->note();
  const Stopwatch updating;
  if (!update_.run(step, member_, arguments(result.sums))) {
    result.outcome = Outcome::over;
    return result;
  }
  result.update_seconds = updating.seconds();
  result.outcome = wait(watch, [&] { return state_->done(step); });
  return result;
}

Session::Settled SharedSession::settle() {
  state_->fence();
  Settled settled{state_->settled_step(), {}, {}};
  if (!state_->must_complete()) return settled;
  settled.sums = state_->sums();
  settled.note = state_->note();
  return settled;
}

void SharedSession::copy(std::span<float> parameters, std::span<const std::span<float>> slots,
                         const Arguments& arguments) {
  if (state_->fenced()) return update_.extract(parameters, slots, arguments(settle().sums));
  std::memcpy(parameters.data(), state_->parameters().data(), parameters.size_bytes());
  for (size_t i = 0; i < slots.size(); ++i)
    std::memcpy(slots[i].data(), state_->slot(i).data(), slots[i].size_bytes());
}

}  // namespace muster::collective
