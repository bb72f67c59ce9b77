#include "tests/unit/trainer/ps/protocol/shard_process.h"

#include "common/error.h"

namespace muster::ps::protocol {

namespace {

// Returns whether anything has changed by which rank 0 decides; counts of pushes do not matter.
bool worth_a_report(const ShardState& now, const ShardState& then) {
  const auto key = [](const ShardState& state) {
    return std::tuple(state.step(), state.generation(), state.serving(), state.whole(),
                      state.used(), state.coupling(), state.standby_lost());
  };
  return key(now) != key(then);
}

}  // namespace

ShardProcess::ShardProcess(SimulatedJob& job, int id, Place place, int attempt)
    : Process(job, id, place, attempt), job_(job), client_(job, *this) {
  const int shards = job.setting().shards;
  for (int i = 0; i < job.setting().copies; ++i)
    copies_.push_back(
        std::make_unique<ShardCopy>(job, *this, id, (place.index - i + shards) % shards));
}

const ReplicatedShard* ShardProcess::hosted(int shard) const {
  for (const auto& copy : copies_)
    if (copy->hosted().shard().shape().shard == shard) return &copy->hosted();
  return nullptr;
}

ShardCopy* ShardProcess::copy_of(uint32_t shard) {
  for (const auto& copy : copies_)
    if (copy->hosted().shard().shape().shard == static_cast<int>(shard)) return copy.get();
  return nullptr;
}

std::vector<ShardState> ShardProcess::states() const {
  std::vector<ShardState> states;
  for (const auto& copy : copies_) states.push_back(copy->hosted().state());
  return states;
}

bool ShardProcess::ready(int thread) const {
  if (thread > 0) return copies_[static_cast<size_t>(thread) - 1]->wants_standby();
  if (client_.ready()) return true;
  const std::vector<ShardState> now = states();
  return client_.is_open() &&
         !std::equal(now.begin(), now.end(), reported_.begin(), reported_.end(),
                     [](const auto& a, const auto& b) { return !worth_a_report(a, b); });
}

void ShardProcess::act(int thread) {
  if (thread > 0) return copies_[static_cast<size_t>(thread) - 1]->reach_standby();
  reported_ = states();
  PeerMessage message;
  message.mutable_shards()->Add(reported_.begin(), reported_.end());
  client_.act(std::move(message));
}

void ShardProcess::receive(int stream, Side side, Message message) {
  if (client_.owns(stream, side)) {
    if (!client_.receive(message)) return finish(false);
    for (const auto& copy : copies_) copy->look(client_.view());
    return;
  }
  if (auto* push = std::get_if<PushMessage>(&message)) {
    copy_of(static_cast<uint32_t>(push->shard))->exchange(stream, *push);
  } else if (const auto* forward = std::get_if<ForwardMessage>(&message)) {
    // The coupling's first message names the shard; the others go to the copy that knows the
    // stream.
    for (const auto& copy : copies_)
      if (!forward->header.has_hello() ||
          copy.get() == copy_of(forward->header.hello().opening().shard()))
        copy->follow(stream, *forward);
  } else if (const auto* reply = std::get_if<Acknowledgement>(&message)) {
    for (const auto& copy : copies_)
      if (copy->is_standby_stream(stream)) copy->acknowledged(*reply);
  } else if (std::holds_alternative<End>(message)) {
    for (const auto& copy : copies_) copy->end(stream);
  } else {
    job_.network().send(stream, Side::server, answer(message));  // the client closes the call
  }
}

Message ShardProcess::answer(Message& message) {
  try {
    if (const auto* request = std::get_if<OpenRequest>(&message))
      return copy_of(request->shard())->open(*request);
    if (const auto* request = std::get_if<WriteRequest>(&message))
      return copy_of(request->shard())->write(*request);
    const auto& request = std::get<SnapshotRequest>(message);
    return copy_of(request.shard())->snapshot(request);
  } catch (const Unavailable& error) {
    return Refusal{error.what()};
  }
}

}  // namespace muster::ps::protocol
