#include "trainer/ps/formation.h"

#include <algorithm>

namespace muster::ps {

bool left_behind(const GroupView& view, uint64_t generation) {
  return view.generation() != generation || view.phase() == GroupView::FAILED ||
         view.phase() == GroupView::FINISHED;
}

std::optional<uint64_t> common_step(const std::vector<SnapshotReply>& copies, uint64_t least) {
  const uint64_t step = copies.front().state().step();
  for (const SnapshotReply& copy : copies)
    if (copy.state().step() != step) return std::nullopt;
  if (step < least) return std::nullopt;
  return step;
}

Formation::Formation(int shards, bool sync, OpenRequest common)
    : shards_(shards), sync_(sync), common_(std::move(common)) {}

void Formation::claimed(uint64_t generation) {
  generation_ = generation;
  request_ = common_;
  request_.set_generation(generation);
  next_ = Next::fence;
}

void Formation::fenced() {
  next_ = Next::gather;
}

void Formation::look(const group::Roster& roster) {
  if (next_ == Next::watch && overtaken(roster)) next_ = Next::claim;
  if (next_ == Next::gather) gather(roster);
}

void Formation::gather(const group::Roster& roster) {
  seats_.clear();
  for (int i = 0; i < shards_; ++i) {
    const group::Roster::Peer* shard = roster.shard(i);
    if (!shard) return;
    seats_.push_back({shard->hello.incarnation(), shard->shard});
    above_ = std::max(above_, shard->shard.generation());
  }
  // The storage has forgotten generations that the shards know.
  if (above_ >= generation_)
    next_ = Next::claim;
  else
    decide();
}

// A shard has come back without its state. One that only lost its stream to us, or is on its way
// back, may hold what it held.
bool Formation::overtaken(const group::Roster& roster) const {
  for (int i = 0; i < shards_; ++i) {
    const group::Roster::Peer* shard = roster.shard(i);
    if (!shard) continue;
    if (shard->hello.incarnation() != seats_[static_cast<size_t>(i)].incarnation) return true;
  }
  return false;
}

void Formation::decide() {
  const ShardState& first = seats_[0].state;
  bool whole = !torn_;
  bool any = false;
  for (const Seat& seat : seats_) {
    any |= seat.state.lineage() != 0;
    whole &= seat.state.lineage() != 0 && seat.state.lineage() == first.lineage();
  }
  if (whole) {
    request_.set_content(OpenRequest::KEEP);
    request_.set_lineage(first.lineage());
    *request_.mutable_position() = first.base();
    reason_ = "every shard holds its part of what generation " + std::to_string(first.lineage()) +
              " began";
    next_ = Next::open;
    return;
  }
  reason_ = any ? "a shard has lost its state" : "the shards are empty";
  next_ = Next::choose;
}

void Formation::chosen(const std::optional<Checkpoint>& newest) {
  request_.set_content(newest ? OpenRequest::RESTORE : OpenRequest::INITIALIZE);
  if (newest) {
    request_.set_checkpoint(newest->folder);
    *request_.mutable_position() = newest->position;
  }
  next_ = Next::open;
}

void Formation::opened(const std::vector<OpenReply>& replies) {
  uint64_t lowest = ~uint64_t{0};
  uint64_t highest = 0;
  for (const OpenReply& reply : replies) {
    lowest = std::min(lowest, reply.state().step());
    highest = std::max(highest, reply.state().step());
  }
  step_ = lowest;
  torn_ = sync_ && highest - lowest > 1;
  const ShardState& first = replies[0].state();
  sums_ = sync_ && first.step() > lowest ? first.sums_before() : first.sums();
  next_ = torn_ ? Next::claim : Next::announce;
}

void Formation::announce(GroupView& view) const {
  if (view.phase() == GroupView::FINISHED || view.phase() == GroupView::FAILED) return;
  view.set_generation(request_.generation());
  view.set_phase(GroupView::RUNNING);
  *view.mutable_base() = request_.position();
  *view.mutable_sums() = sums_;
}

void Formation::announced() {
  next_ = Next::watch;
}

void Formation::failed() {
  next_ = Next::claim;
}

void Formation::suspend(GroupView& view) {
  if (view.phase() == GroupView::RUNNING) view.set_phase(GroupView::FORMING);
}

void Formation::step_down(GroupView& view) {
  if (view.phase() != GroupView::RUNNING && view.phase() != GroupView::FORMING) return;
  view.set_phase(GroupView::FORMING);
  view.set_generation(0);
}

}  // namespace muster::ps
