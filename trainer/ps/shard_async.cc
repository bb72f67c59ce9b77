#include <algorithm>
#include <utility>

#include "trainer/ps/shard.h"

// The asynchronous policies' part of a Shard: sessions, work and how far members are apart.

namespace muster::ps {

// Each request of a session counts once; a pull too, since it takes a ticket. Null: a repeated one.
Shard::Session* Shard::attend(uint64_t id, const PushHeader& header) {
  const auto [at, is_new] = sessions_.try_emplace(id);
  Session& session = at->second;
  if (is_new) enter(id, session, header.rank);
  if (header.sequence <= session.sequence) {
    ++counts_.duplicates;
    return nullptr;
  }
  session.sequence = header.sequence;
  // Who asks again has had the answers of all shards.
  if (session.last) note_done(*std::exchange(session.last, std::nullopt));
  return &session;
}

void Shard::note_done(uint64_t ticket) {
  tickets_.done(ticket);
  if (log_.mode() != TwinLog::Mode::off) done_.push_back(ticket);
}

// It begins beside the slowest, and takes the place of who had its rank.
void Shard::enter(uint64_t id, Session& session, uint32_t rank) {
  session.rank = rank;
  bool alone = true;
  for (auto& [other_id, other] : sessions_) {
    if (other_id == id) continue;
    session.clock = alone ? other.clock : std::min(session.clock, other.clock);
    alone = false;
    if (other.rank != rank) continue;
    other.working = false;
    tickets_.release(other_id);
  }
}

void Shard::measure(const Session& session) {
  const uint64_t staleness = step_ - session.seen;
  ++counts_.pushes;
  counts_.staleness += staleness;
  counts_.most_staleness = std::max(counts_.most_staleness, staleness);
}

void Shard::push_async(uint64_t id, const PushHeader& header, const Buffers& buffers,
                       Answers& answers) {
  Session* const session = attend(id, header);
  if (!session) return;
  measure(*session);
  gradient_views_.assign(1, buffers.gradients);
  copy_views_.clear();
  if (!buffers.parameters.empty()) copy_views_.push_back(buffers.parameters);
  if (shape_.shard == 0 && shape_.shards > 1)
    session->last = header.ticket;
  else
    note_done(header.ticket);
  ForwardUpdate update;
  update.set_step(step_);
  update.set_schedule_step(shape_.shard == 0 ? step_ : header.step);
  update.set_ticket(header.ticket);
  set_sums(*update.mutable_sums(), header.sums);
  update.set_next_ticket(tickets_.next());
  update.mutable_done()->Add(done_.begin(), done_.end());
  done_.clear();
  append(update);
  const bool applied = take_step(update);
  for (compute::LossSums& sums : unseen_) sums += header.sums;
  ++session->clock;
  session->working = false;
  counts_.held_back += shape_.shard == 0 && ahead(*session);
  answer_async(
      {id, header.sequence, header.rank},
      applied && !copy_views_.empty() ? Answer::Values::delivered : Answer::Values::current,
      answers);
  serve_waiting(answers);
}

void Shard::answer_async(const Waiting& request, Answer::Values values, Answers& answers) {
  if (!settled()) {
    waiting_.push_back(request);
    return;
  }
  Session& session = sessions_[request.session];
  Answer answer = make_answer(request.session, request.sequence, unseen_[request.rank]);
  answer.values = values;
  const bool assigned = shape_.shard > 0 || assign(request.session, session, answer.header);
  // Whose last work may be missing elsewhere is sent to ask again rather than kept waiting.
  if (!assigned && !session.last) {
    waiting_.push_back(request);
    return;
  }
  session.seen = step_;
  if (assigned) unseen_[request.rank] = {};
  answers.push_back(std::move(answer));
}

// Work, or word that there will be none; false: neither yet.
bool Shard::assign(uint64_t id, Session& session, ReplyHeader& header) {
  if (!ahead(session)) header.ticket = tickets_.take(id);
  session.working = header.ticket.has_value();
  header.finished = !header.ticket && tickets_.finished();
  return header.ticket || header.finished;
}

bool Shard::ahead(const Session& session) const {
  if (shape_.policy != Policy::bounded_staleness) return false;
  return std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& other) {
    return other.second.working && session.clock > other.second.clock &&
           session.clock - other.second.clock > shape_.max_staleness;
  });
}

// Work has come back, the slowest has caught up, or all is done: who waits for that is answered.
void Shard::serve_waiting(Answers& answers) {
  if (waiting_.empty()) return;
  auto waiting = std::exchange(waiting_, {});
  // The slowest first: who is ahead of one that begins to compute now gets no work beside it.
  std::ranges::stable_sort(waiting, {},
                           [&](const Waiting& one) { return sessions_[one.session].clock; });
  for (const Waiting& one : waiting) answer_async(one, Answer::Values::current, answers);
}

}  // namespace muster::ps
