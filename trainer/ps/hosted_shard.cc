#include "trainer/ps/hosted_shard.h"

#include "common/error.h"

namespace muster::ps {

namespace {

void to_messages(const checkpoint::EpochSums& sums, EpochSumsMessages& messages) {
  messages.Clear();
  for (const auto& epoch : sums.known()) {
    EpochSumsMessage& message = *messages.Add();
    message.set_epoch(epoch.number);
    message.set_rows(epoch.sums.rows);
    message.set_loss(epoch.sums.loss);
    message.set_correct(epoch.sums.correct);
  }
}

}  // namespace

checkpoint::EpochSums from_messages(const EpochSumsMessages& messages) {
  checkpoint::EpochSums sums;
  for (const EpochSumsMessage& message : messages) {
    compute::LossSums of_epoch;
    of_epoch.rows = message.rows();
    of_epoch.loss = message.loss();
    of_epoch.correct = message.correct();
    sums.add(message.epoch(), of_epoch);
  }
  return sums;
}

checkpoint::Position from_message(const PositionMessage& message) {
  checkpoint::Position position;
  position.step = message.step();
  position.epoch = message.epoch();
  position.next_batch = message.next_batch();
  position.optimizer_t = message.optimizer_t();
  position.outstanding.assign(message.outstanding().begin(), message.outstanding().end());
  position.sums = from_messages(message.sums());
  return position;
}

PositionMessage to_message(const checkpoint::Position& position) {
  PositionMessage message;
  message.set_step(position.step);
  message.set_epoch(position.epoch);
  message.set_next_batch(position.next_batch);
  message.set_optimizer_t(position.optimizer_t);
  message.mutable_outstanding()->Add(position.outstanding.begin(), position.outstanding.end());
  to_messages(position.sums, *message.mutable_sums());
  return message;
}

ShardState HostedShard::open(const OpenRequest& request, const Load& load,
                             Shard::Answers& answers) {
  const uint64_t current = shard_.generation();
  if (request.generation() < current)
    throw Unavailable("generation " + std::to_string(request.generation()) +
                      " was superseded by generation " + std::to_string(current));
  if (request.generation() == current) return state();  // said again
  Tickets tickets;
  if (request.content() == OpenRequest::KEEP) {
    if (current == 0) throw Unavailable("expected a shard to keep, found it empty");
    if (request.lineage() != lineage_)
      throw Unavailable("expected to keep what generation " + std::to_string(request.lineage()) +
                        " began, found what generation " + std::to_string(lineage_) + " began");
    tickets = shard_.tickets();
    tickets.release_all();
  } else {
    Shard::Content content = load(request);
    base_ = from_message(request.position());
    content.sums = base_.sums;
    shard_.load(std::move(content));
    lineage_ = request.generation();
    tickets = Tickets(base_.epoch * request.tickets_per_epoch() + base_.next_batch,
                      request.total_tickets(), base_.outstanding, request.tickets_per_epoch());
  }
  tickets_per_epoch_ = request.tickets_per_epoch();
  shard_.begin(request.generation(), static_cast<int>(request.members()), std::move(tickets),
               answers);
  return state();
}

SnapshotReply HostedShard::snapshot(const SnapshotRequest& request) {
  if (request.generation() != shard_.generation())
    throw Unavailable("expected generation " + std::to_string(shard_.generation()) + ", found " +
                      std::to_string(request.generation()));
  kept_ = Copy{shard_.generation(), shard_.step(), shard_.image()};
  SnapshotReply reply;
  *reply.mutable_state() = state();
  checkpoint::Position position = base_;
  position.step = shard_.step();
  position.optimizer_t = shard_.optimizer_t();
  position.sums = shard_.sums();
  if (shard_.shape().policy != Shard::Policy::sync && tickets_per_epoch_ > 0) {
    position.epoch = shard_.tickets().next() / tickets_per_epoch_;
    position.next_batch = shard_.tickets().next() % tickets_per_epoch_;
    position.outstanding = shard_.tickets().outstanding();
  }
  *reply.mutable_position() = to_message(position);
  return reply;
}

const HostedShard::Copy& HostedShard::to_write(const WriteRequest& request) const {
  if (!kept_) throw Unavailable("expected a snapshot to write, found none");
  if (kept_->generation != request.generation() || kept_->step != request.step())
    throw Unavailable("expected the snapshot of step " + std::to_string(kept_->step) +
                      " of generation " + std::to_string(kept_->generation) + ", found " +
                      std::to_string(request.step()) + " of " +
                      std::to_string(request.generation()));
  return *kept_;
}

ShardState HostedShard::state() const {
  ShardState state;
  if (shard_.generation() == 0) return state;
  state.set_generation(shard_.generation());
  state.set_step(shard_.step());
  *state.mutable_base() = to_message(base_);
  state.set_lineage(lineage_);
  to_messages(shard_.sums(), *state.mutable_sums());
  to_messages(shard_.sums_before(), *state.mutable_sums_before());
  state.set_pushes(shard_.counts().pushes);
  state.set_left_out(shard_.counts().left_out);
  state.set_staleness(shard_.counts().staleness);
  return state;
}

}  // namespace muster::ps
