#include "trainer/ps/shard/replicated_shard.h"

#include "common/error.h"
#include "trainer/host/instruction_set.h"

namespace muster::ps {

namespace {

std::string to_text(const compute::LossSums& sums) {
  return std::to_string(sums.rows) + " rows of a weight of " + std::to_string(sums.weight);
}

}  // namespace

ShardState ReplicatedShard::open(const OpenRequest& request, const Load& load,
                                 Shard::Answers& answers) {
  const uint64_t current = shard_->generation();
  if (request.generation() < current)
    throw Unavailable("generation " + std::to_string(request.generation()) +
                      " was superseded by generation " + std::to_string(current));
  if (request.generation() == current) return state();  // a repeated request
  Tickets tickets;
  if (request.content() == OpenRequest::KEEP) {
    tickets = kept(request);
  } else {
    Shard::Content content = load(request);
    base_ = from_message(request.position());
    content.sums = base_.sums;
    shard_->load(std::move(content));
    differs_ = false;
    lineage_ = request.generation();
    tickets = Tickets(base_.epoch * request.tickets_per_epoch() + base_.next_batch,
                      request.total_tickets(), base_.outstanding, request.tickets_per_epoch());
  }
  tickets_per_epoch_ = request.tickets_per_epoch();
  opening_ = request;
  feed_.open(request.follow() ? 0 : request.coupling(), *shard_);
  if (!request.follow()) {
    followed_ = 0;
    whole_ = false;
  }
  shard_->begin(request.generation(), static_cast<int>(request.members()), std::move(tickets),
                answers, /*serving=*/!request.follow());
  return state();
}

// Returns the tickets to keep. Throws Unavailable if the shard's content is not what the request
// expects.
Tickets ReplicatedShard::kept(const OpenRequest& request) const {
  if (shard_->generation() == 0) throw Unavailable("expected a shard to keep, found it empty");
  if (request.lineage() != lineage_)
    throw Unavailable("expected to keep what generation " + std::to_string(request.lineage()) +
                      " began, found what generation " + std::to_string(lineage_) + " began");
  if (!shard_->serving() && !whole_)
    throw Unavailable("expected a whole copy to keep, found one on its way to be whole");
  const bool together = shard_->log().mode() == StandbyLog::Mode::together;
  const uint64_t coupling = shard_->serving() ? (together ? feed_.coupling() : 0) : followed_;
  if (request.follow() == shard_->serving() && (request.follow() || request.coupling() != 0))
    throw Unavailable("expected the other of the two copies");
  if (request.coupling() != 0 && request.coupling() != coupling)
    throw Unavailable("expected the copy of coupling " + std::to_string(request.coupling()) +
                      ", found that of " + std::to_string(coupling));
  Tickets tickets = shard_->tickets();
  tickets.release_all();
  return tickets;
}

void ReplicatedShard::name_standby(uint64_t generation, uint64_t incarnation) {
  if (generation == shard_->generation() && shard_->serving()) feed_.name(incarnation);
}

std::optional<StandbyFeed::Message> ReplicatedShard::next_forward() {
  auto message = feed_.next(*shard_);
  if (message && message->header.has_state()) {
    *message->header.mutable_state()->mutable_base() = to_message(base_);
    message->header.mutable_state()->set_lineage(lineage_);
  }
  return message;
}

bool ReplicatedShard::superseded(const ForwardHello& greeting) const {
  const uint64_t generation = greeting.opening().generation();
  return greeting.incarnation() != process_ || generation < shard_->generation() ||
         (generation == shard_->generation() && shard_->serving());
}

Acknowledgement ReplicatedShard::follow(const ForwardHello& greeting, const Forward& message,
                                        std::span<const float> values, Shard::Answers& answers) {
  Acknowledgement reply;
  const bool ours = !shard_->serving() && followed_ != 0 && message.coupling() == followed_;
  const auto reject = [&](const std::string& expected, const std::string& found) {
    reply.set_status(Acknowledgement::REJECTED);
    reply.set_message("shard " + std::to_string(shard_->shape().shard) + ": expected " + expected +
                      ", found " + found + " and " + std::to_string(values.size()) + " floats");
  };
  if (message.has_hello()) {
    if (superseded(greeting)) reply.set_status(Acknowledgement::SUPERSEDED);
    reply.set_resumes(ours);
    reply.set_fuses(host::fuses());
  } else if (message.has_state()) {
    if (superseded(greeting)) {
      reply.set_status(Acknowledgement::SUPERSEDED);
    } else if (!adopt(greeting, message, values, answers)) {
      reject("the state of " + std::to_string(shard_->shape().range.size()) + " parameters",
             "that of step " + std::to_string(message.state().step()) + " with " +
                 to_text(get_sums(message.state().committed())));
    }
  } else if (!ours) {
    reply.set_status(Acknowledgement::SUPERSEDED);
  } else if (message.has_update()) {
    if (!shard_->follow(message.update(), values))
      reject("the update of step " + std::to_string(shard_->step()) + " and " +
                 std::to_string(shard_->shape().range.size()) + " floats",
             "that of step " + std::to_string(message.update().step()) + " with " +
                 to_text(get_sums(message.update().sums())) + ", tickets below " +
                 std::to_string(message.update().next_ticket()));
  } else if (message.compare()) {
    reply.set_digest(shard_->image().digest());
  } else {
    whole_ |= message.whole();
  }
  reply.set_step(shard_->step());
  reply.set_whole(!shard_->serving() && whole_);
  return reply;
}

bool ReplicatedShard::adopt(const ForwardHello& greeting, const Forward& message,
                            std::span<const float> values, Shard::Answers& answers) {
  const ForwardState& state = message.state();
  const OpenRequest& opening = greeting.opening();
  if (!shard_->adopt(state, values)) return false;
  feed_.open(0, *shard_);
  base_ = from_message(state.base());
  lineage_ = state.lineage();
  tickets_per_epoch_ = opening.tickets_per_epoch();
  followed_ = message.coupling();
  whole_ = differs_ = false;
  differences_in_a_row_ = 0;
  opening_ = opening;
  Tickets tickets(state.next_ticket(), opening.total_tickets(),
                  {state.outstanding().begin(), state.outstanding().end()},
                  opening.tickets_per_epoch());
  shard_->begin(opening.generation(), static_cast<int>(opening.members()), std::move(tickets),
                answers, /*serving=*/false);
  return true;
}

SnapshotReply ReplicatedShard::snapshot(const SnapshotRequest& request) {
  if (request.generation() != shard_->generation())
    throw Unavailable("expected generation " + std::to_string(shard_->generation()) + ", found " +
                      std::to_string(request.generation()));
  if (!shard_->serving())
    throw Unavailable("expected shard " + std::to_string(shard_->shape().shard) +
                      " to be served here, found a second copy");
  if (differs_)
    throw Unavailable("expected two copies of shard " + std::to_string(shard_->shape().shard) +
                      " with the same state, found two that differ");
  kept_ = Copy{shard_->generation(), shard_->step(), shard_->image()};
  feed_.compare(*shard_);
  SnapshotReply reply;
  *reply.mutable_state() = state();
  checkpoint::Position position = base_;
  position.step = shard_->step();
  position.optimizer_t = shard_->optimizer_t();
  position.sums = shard_->sums();
  if (!shard_->lockstep() && tickets_per_epoch_ > 0) {
    position.epoch = shard_->tickets().next() / tickets_per_epoch_;
    position.next_batch = shard_->tickets().next() % tickets_per_epoch_;
    position.outstanding = shard_->tickets().outstanding();
  }
  *reply.mutable_position() = to_message(position);
  return reply;
}

const ReplicatedShard::Copy& ReplicatedShard::to_write(const WriteRequest& request) const {
  if (!kept_) throw Unavailable("expected a snapshot to write, found none");
  if (kept_->generation != request.generation() || kept_->step != request.step())
    throw Unavailable("expected the snapshot of step " + std::to_string(kept_->step) +
                      " of generation " + std::to_string(kept_->generation) + ", found " +
                      std::to_string(request.step()) + " of " +
                      std::to_string(request.generation()));
  return *kept_;
}

bool ReplicatedShard::is_compared(const Copy& copy) const {
  return differs_ || feed_.awaits_digest(copy.step, *shard_) || feed_.digest(copy.step);
}

ReplicatedShard::Comparison ReplicatedShard::compare(const Copy& copy, uint32_t digest) {
  if (copy.generation != shard_->generation()) return Comparison::over;
  if (differs_) return Comparison::differs;
  if (feed_.awaits_digest(copy.step, *shard_)) return Comparison::pending;
  const std::optional<uint32_t> other = feed_.digest(copy.step);
  if (!other) return Comparison::over;
  if (*other == digest) {
    differences_in_a_row_ = 0;
    return Comparison::over;
  }
  differs_ = true;
  ++differences_in_a_row_;
  shard_->count_difference();
  return Comparison::differs;
}

ShardState ReplicatedShard::state() const {
  ShardState state;
  state.set_shard(static_cast<uint32_t>(shard_->shape().shard));
  if (shard_->generation() == 0) return state;
  const bool together = shard_->log().mode() == StandbyLog::Mode::together;
  state.set_serving(shard_->serving());
  state.set_whole(!shard_->serving() && whole_);
  state.set_used(shard_->used());
  state.set_coupling(!shard_->serving() ? followed_ : together ? feed_.coupling() : 0);
  state.set_replicated(shard_->serving() && together && feed_.standby_is_whole());
  state.set_standby_lost(shard_->serving() && together && feed_.lost());
  state.set_differs(differs_);
  state.set_generation(shard_->generation());
  state.set_step(shard_->step());
  *state.mutable_base() = to_message(base_);
  state.set_lineage(lineage_);
  to_messages(shard_->sums(), *state.mutable_sums());
  to_messages(shard_->sums_before(), *state.mutable_sums_before());
  state.set_pushes(shard_->counts().pushes);
  state.set_left_out(shard_->counts().left_out);
  state.set_staleness(shard_->counts().staleness);
  return state;
}

}  // namespace muster::ps
