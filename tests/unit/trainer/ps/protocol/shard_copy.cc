#include "tests/unit/trainer/ps/protocol/shard_copy.h"

#include <algorithm>

#include "common/error.h"
#include "tests/unit/trainer/ps/joined.h"

namespace muster::ps::protocol {

ShardCopy::ShardCopy(SimulatedJob& job, const Process& owner, int id, int shard)
    : job_(job),
      owner_(owner),
      id_(id),
      shard_(shard),
      hosted_(job.books().make_shard(shard), static_cast<uint64_t>(id) + 1) {}

void ShardCopy::exchange(int stream, PushMessage& message) {
  Session& session = sessions_[stream];
  if (session.pending) return;
  session.rank = message.header.rank;
  // A member whose place another has taken is not waited for any more.
  std::erase_if(computing_, [&](int other) {
    return other != stream && sessions_.at(other).rank == session.rank;
  });
  if (message.header.generation == hosted_.shard().generation()) start_clock(stream);
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
    if (hosted_.shard().counts().pushes > before) {
      ++clocks_.at(stream);
      computing_.erase(stream);
    }
  }
  deliver();
}

// A new member begins at the slowest member's clock.
void ShardCopy::start_clock(int stream) {
  if (clocks_.contains(stream)) return;
  const auto slowest =
      std::ranges::min_element(clocks_, {}, [](const auto& one) { return one.second; });
  clocks_[stream] = slowest == clocks_.end() ? 0 : slowest->second;
}

// Checks that no member begins to compute that is further ahead of a computing one than the
// staleness allows.
void ShardCopy::check_bound(int stream) {
  computing_.insert(stream);
  for (const int other : computing_)
    if (clocks_.at(stream) - clocks_.at(other) > job_.setting().staleness)
      throw Violation(owner_.name() + ": a member is given work after " +
                      std::to_string(clocks_.at(stream)) +
                      " pushes, while another computes after " + std::to_string(clocks_.at(other)));
}

void ShardCopy::deliver() {
  const Shard& shard = hosted_.shard();
  for (const Shard::Answer& answer : std::exchange(answers_, {})) {
    const auto found = sessions_.find(static_cast<int>(answer.session));
    if (found == sessions_.end()) continue;
    found->second.pending = false;
    if (job_.setting().bounded && answer.header.ticket) check_bound(found->first);
    ReplyMessage reply{answer.header, {}};
    using Values = Shard::Answer::Values;
    const auto copy = [&](std::span<const float> values) {
      reply.values.assign(values.begin(), values.end());
    };
    if (answer.values == Values::current) copy(shard.parameters());
    if (answer.values == Values::previous) copy(shard.previous());
    if (answer.values == Values::delivered) copy(found->second.parameters);
    job_.network().send(found->first, Side::server, std::move(reply));
  }
  pump();
  check();
}

void ShardCopy::pump() {
  if (standby_stream_ < 0 || standby_session_ != hosted_.feed().session()) return;
  while (auto message = hosted_.next_forward())
    job_.network().send(standby_stream_, Side::client,
                        ForwardMessage{message->header, std::move(message->values)});
}

void ShardCopy::check() {
  const Shard& shard = hosted_.shard();
  if (shard.generation() == 0) return;
  const Shard::Counts& counts = shard.counts();
  if (std::exchange(left_out_, counts.left_out) != counts.left_out)
    job_.tell(id_, "left somebody out of step", shard.step());
  if (std::exchange(held_back_, counts.held_back) != counts.held_back)
    job_.tell(id_, "held somebody back at step", shard.step());
  if (counts.conflicting > 0)
    throw Violation(owner_.name() + ": a push of step " + std::to_string(shard.step()) +
                    " or the one before has come again with other content");
  job_.books().check_shard(owner_.name() + (shard.serving() ? "" : ", second copy"), shard.step(),
                           {shard_, shard.parameters(), shard.slots(), &shard.sums()});
}

void ShardCopy::follow(int stream, const ForwardMessage& message) {
  if (message.header.has_hello()) feeds_[stream] = message.header.hello();
  const auto greeting = feeds_.find(stream);
  if (greeting == feeds_.end()) return;
  const Acknowledgement reply =
      hosted_.follow(greeting->second, message.header, joined(message.values), answers_);
  if (reply.status() == Acknowledgement::REJECTED)
    throw Violation(owner_.name() + " rejected a forward: " + reply.message());
  if (message.header.whole() && reply.status() == Acknowledgement::OK)
    job_.tell(id_, "has a whole copy at step", reply.step());
  job_.network().send(stream, Side::server, reply);
  deliver();
}

void ShardCopy::acknowledged(const Acknowledgement& reply) {
  const uint64_t greeted = std::exchange(greeted_, 0);
  if (!hosted_.acknowledged(reply, answers_)) {
    drop_standby();
    refused_ = greeted;
  }
  deliver();
}

void ShardCopy::end(int stream) {
  feeds_.erase(stream);
  if (stream == standby_stream_) {
    drop_standby();
    return deliver();
  }
  if (!sessions_.contains(stream)) return;
  computing_.erase(stream);
  clocks_.erase(stream);
  hosted_.shard().detach(static_cast<uint64_t>(stream), answers_);
  deliver();
  sessions_.erase(stream);
}

void ShardCopy::drop_standby() {
  hosted_.cut(answers_);
  job_.network().close(std::exchange(standby_stream_, -1), Side::client);
}

void ShardCopy::look(const GroupView& view) {
  refused_ = 0;
  if (shard_ >= view.places_size()) return;
  const ShardPlace& place = view.places(shard_);
  if (place.standby_incarnation() == 0) return;
  standby_ps_ = static_cast<int>(place.standby());
  hosted_.name_standby(view.generation(), place.standby_incarnation());
}

// StandbyLink tries again without limit. Here a try is made only if its result may differ: the same
// greeting would be refused again until rank 0 has announced something new.
bool ShardCopy::wants_standby() const {
  const bool current = standby_session_ == hosted_.feed().session();
  if (standby_stream_ >= 0) return !current || job_.is_silent(standby_process_);
  return hosted_.feed().standby() != 0 && refused_ != hosted_.shard().generation() &&
         job_.process_at({Place::Role::ps, standby_ps_}) >= 0;
}

void ShardCopy::reach_standby() {
  if (standby_stream_ >= 0) {
    drop_standby();
    return deliver();
  }
  standby_session_ = hosted_.feed().session();
  standby_process_ = job_.process_at({Place::Role::ps, standby_ps_});
  standby_stream_ = job_.network().connect(id_, standby_process_);
  const StandbyFeed::Message greeting = hosted_.greet();
  greeted_ = greeting.header.hello().opening().generation();
  job_.network().send(standby_stream_, Side::client, ForwardMessage{greeting.header, {}});
}

// Does what StandbyLink does, but without its patience.
void ShardCopy::lose_standby() {
  if (hosted_.feed().standby() == 0) return;
  if (standby_stream_ >= 0) drop_standby();
  hosted_.lose_standby();
  deliver();
  if (hosted_.state().standby_lost())
    job_.tell(id_, "lost its standby at step", hosted_.shard().step());
}

Message ShardCopy::open(const OpenRequest& request) {
  OpenReply reply;
  const uint64_t before = hosted_.shard().generation();
  *reply.mutable_state() = hosted_.open(
      request, [this](const OpenRequest& wanted) { return load(wanted); }, answers_);
  if (reply.state().generation() != before) {
    computing_.clear();
    clocks_.clear();
  }
  deliver();
  job_.tell(id_, request.follow() ? "follows in generation" : "opened generation",
            request.generation());
  job_.tell(id_, "is at step", reply.state().step());
  return reply;
}

Message ShardCopy::write(const WriteRequest& request) {
  const ReplicatedShard::Copy& copy = hosted_.to_write(request);
  SimulatedStorage::File file{copy.step, *copy.image.parameters, {}};
  for (const auto& slot : copy.image.slots) file.slots.push_back(*slot);
  job_.storage().write(request.directory(), shard_, std::move(file));
  return WriteReply();
}

Shard::Content ShardCopy::load(const OpenRequest& request) {
  Shard::Content content = job_.books().initial(shard_);
  if (request.content() == OpenRequest::RESTORE) {
    const auto& file = job_.storage().checkpoint(request.checkpoint()).files.at(shard_);
    content.parameters = file.parameters;
    content.slots = file.slots;
  }
  content.step = request.position().step();
  content.optimizer_t = request.position().optimizer_t();
  return content;
}

}  // namespace muster::ps::protocol
