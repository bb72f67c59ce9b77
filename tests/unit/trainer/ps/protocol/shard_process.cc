#include "tests/unit/trainer/ps/protocol/shard_process.h"

#include "common/error.h"

namespace muster::ps::protocol {

using Side = SimulatedNetwork::Side;

ShardProcess::ShardProcess(World& world, int id, Place place, int attempt)
    : Process(world, id, place, attempt),
      attendance_(world, *this, id),
      hosted_(world.books().make_shard(place.index)) {}

bool ShardProcess::ready(int) const {
  if (attendance_.wants_connection()) return true;
  return attendance_.is_open() && (reported_.step() != hosted_.shard().step() ||
                                   reported_.generation() != hosted_.shard().generation());
}

void ShardProcess::act(int) {
  reported_ = hosted_.state();
  if (attendance_.wants_connection()) return attendance_.connect(&reported_);
  attendance_.report(reported_);
}

void ShardProcess::receive(int stream, Message message) {
  if (attendance_.owns(stream)) {
    if (!attendance_.receive(message)) finish(false);
    return;
  }
  if (auto* push = std::get_if<PushMessage>(&message)) {
    exchange(stream, *push);
  } else if (std::holds_alternative<End>(message)) {
    if (!sessions_.contains(stream)) return;
    hosted_.shard().detach(static_cast<uint64_t>(stream), answers_);
    deliver();
    sessions_.erase(stream);
    computing_.erase(stream);
  } else {
    world_.network().send(stream, Side::server, answer(message));  // the client closes the call
  }
  check();
}

void ShardProcess::exchange(int stream, PushMessage& message) {
  Session& session = sessions_[stream];
  if (session.pending) return;
  session.rank = message.header.rank;
  // Whose place somebody has taken is waited for no more.
  std::erase_if(computing_, [&](const auto& one) {
    return one.first != stream && sessions_.at(one.first).rank == session.rank;
  });
  session.pending =
      message.header.sequence > std::exchange(session.sequence, message.header.sequence);
  const auto id = static_cast<uint64_t>(stream);
  if (message.header.pull) {
    hosted_.shard().pull(id, message.header, answers_);
  } else {
    session.gradients = std::move(message.gradients);
    session.shares_memory = message.header.rank % 2 == 1;
    if (session.shares_memory) session.parameters.resize(session.gradients.size());
    const uint64_t before = hosted_.shard().counts().pushes;
    hosted_.shard().push(id, message.header, {session.gradients, session.parameters}, answers_);
    if (world_.setting().bounded && hosted_.shard().counts().pushes > before)
      count_for_bound(stream);
  }
  deliver();
}

// The staleness is bounded by 0: while a member computes, each of the others may finish a round,
// and none begins another.
void ShardProcess::count_for_bound(int stream) {
  computing_.erase(stream);
  for (auto& [other, pushes] : computing_)
    if (sessions_.at(other).rank != sessions_.at(stream).rank && ++pushes[stream] > 1)
      throw Violation(name() + ": while a member computed, another one pushed " +
                      std::to_string(pushes[stream]) + " times");
}

void ShardProcess::deliver() {
  const Shard& shard = hosted_.shard();
  for (const Shard::Answer& answer : std::exchange(answers_, {})) {
    const auto found = sessions_.find(static_cast<int>(answer.session));
    if (found == sessions_.end()) continue;
    found->second.pending = false;
    if (world_.setting().bounded && answer.header.ticket) computing_[found->first];
    ReplyMessage reply{answer.header, {}};
    using Values = Shard::Answer::Values;
    const auto copy = [&](std::span<const float> values) {
      reply.values.assign(values.begin(), values.end());
    };
    if (answer.values == Values::current) copy(shard.parameters());
    if (answer.values == Values::previous) copy(shard.previous());
    if (answer.values == Values::delivered) copy(found->second.parameters);
    world_.network().send(found->first, Side::server, std::move(reply));
  }
}

void ShardProcess::check() {
  const Shard& shard = hosted_.shard();
  if (shard.generation() == 0) return;
  const Shard::Counts& counts = shard.counts();
  if (std::exchange(left_out_, counts.left_out) != counts.left_out)
    tell("left somebody out of step", shard.step());
  if (std::exchange(held_back_, counts.held_back) != counts.held_back)
    tell("held somebody back at step", shard.step());
  world_.books().check_shard(name(), shard.step(),
                             {place().index, shard.parameters(), shard.slots(), &shard.sums()});
}

Message ShardProcess::answer(Message& message) {
  try {
    if (const auto* request = std::get_if<OpenRequest>(&message)) return open(*request);
    if (const auto* request = std::get_if<WriteRequest>(&message)) return write(*request);
    return hosted_.snapshot(std::get<SnapshotRequest>(message));
  } catch (const Unavailable& error) {
    return Refusal{error.what()};
  }
}

Message ShardProcess::open(const OpenRequest& request) {
  OpenReply reply;
  *reply.mutable_state() = hosted_.open(
      request, [this](const OpenRequest& wanted) { return load(wanted); }, answers_);
  if (reply.state().generation() != reported_.generation()) computing_.clear();
  deliver();
  tell("opened generation", request.generation());
  tell("is at step", reply.state().step());
  return reply;
}

Message ShardProcess::write(const WriteRequest& request) {
  const HostedShard::Copy& copy = hosted_.to_write(request);
  SimulatedStorage::File file{copy.step, *copy.image.parameters, {}};
  for (const auto& slot : copy.image.slots) file.slots.push_back(*slot);
  world_.storage().write(request.directory(), place().index, std::move(file));
  return WriteReply();
}

Shard::Content ShardProcess::load(const OpenRequest& request) {
  Shard::Content content = world_.books().initial(place().index);
  if (request.content() == OpenRequest::RESTORE) {
    const auto& file = world_.storage().checkpoint(request.checkpoint()).files.at(place().index);
    content.parameters = file.parameters;
    content.slots = file.slots;
  }
  content.step = request.position().step();
  content.optimizer_t = request.position().optimizer_t();
  return content;
}

}  // namespace muster::ps::protocol
