#include "trainer/ps/member/member_progress.h"

#include <algorithm>

#include "trainer/ps/shard/messages.h"

namespace muster::ps {

// The steps of a generation count from its base.
void MemberProgress::aligned(const GroupView& view, const Exchange::Result& result,
                             checkpoint::Position& position) {
  const bool again = std::exchange(generation_, view.generation()) == view.generation();
  checkpoint::EpochSums sums = again ? position.sums : from_messages(view.sums());
  const uint64_t step = again ? position.step : view.step();  // the sums' step
  position = from_message(view.base());
  if (!setup_.sync) {
    position.epoch = std::max(position.epoch, sums.newest().number);
    position.sums = sums;
    return go_on(result, position);
  }
  const uint64_t epoch = setup_.advance(result.step, position);
  // Our push was accepted and only the answer was lost; or, with backup workers, the other members
  // have completed a step on all shards that one shard had already made with our gradient.
  if (result.step == step + 1) sums.add(epoch, result.sums);
  position.sums = sums;
}

void MemberProgress::stepped(const Exchange::Result& result, uint64_t epoch,
                             checkpoint::Position& position) {
  if (!setup_.sync) return go_on(result, position);
  position.sums.add(epoch, result.sums);
  setup_.advance(result.step, position);
}

// Async.
void MemberProgress::go_on(const Exchange::Result& result, checkpoint::Position& position) {
  position.step = result.step;
  position.sums.add(position.epoch, result.sums);
  ticket_ = result.finished ? std::nullopt : result.ticket;
  if (result.finished) position.epoch = setup_.whole_epochs;
}

}  // namespace muster::ps
