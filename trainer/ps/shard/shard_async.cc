#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "trainer/ps/shard/shard_policy.h"

namespace muster::ps {

namespace {

// A push is applied when it comes. Shard 0 hands out the work (tickets). With several shards, work
// counts as done when its member asks for more: then all shards have it.
//
// With a bound of staleness shard 0 gives no more work to a member whose clock (pushes applied) is
// more than the bound ahead of the slowest member that computes.
class Asynchronous final : public ShardPolicy {
 public:
  Asynchronous(Access access, bool bounded) : ShardPolicy(std::move(access)), bounded_(bounded) {}

  void begin(int members, Answers& answers) override {
    for (const Request& request : std::exchange(waiting_, {}))
      supersede(request.session, request.sequence, answers);
    done_.clear();
    sessions_.clear();
    unseen_.assign(static_cast<size_t>(members), {});
  }

  void push(uint64_t id, const PushHeader& header, const Buffers& buffers,
            Answers& answers) override {
    Session* const session = attend(id, header);
    if (!session) return;
    counts.add_staleness(shard.step() - session->seen);
    if (shard.shape().shard == 0 && shard.shape().shards > 1)
      session->last = header.ticket;
    else
      note_done(header.ticket);
    ForwardUpdate update;
    update.set_step(shard.step());
    update.set_schedule_step(shard.shape().shard == 0 ? shard.step() : header.step);
    update.set_ticket(header.ticket);
    set_sums(*update.mutable_sums(), header.sums);
    update.set_next_ticket(tickets.next());
    update.mutable_done()->Add(done_.begin(), done_.end());
    done_.clear();
    const std::span copies(&buffers.parameters, buffers.parameters.empty() ? 0 : 1);
    const bool delivered = apply(update, {&buffers.gradients, 1}, copies) && !copies.empty();
    for (compute::LossSums& sums : unseen_) sums += header.sums;
    ++session->clock;
    session->working = false;
    counts.held_back += shard.shape().shard == 0 && ahead(*session);
    answer({id, header.sequence, header.rank},
           delivered ? Answer::Values::delivered : Answer::Values::current, answers);
    serve_waiting(answers);
  }

  void pull(uint64_t id, const PushHeader& header, Answers& answers) override {
    if (!attend(id, header)) return;
    answer({id, header.sequence, header.rank}, Answer::Values::current, answers);
    serve_waiting(answers);
  }

  void detach(uint64_t id, Answers& answers) override {
    std::erase_if(waiting_, [&](const Request& request) { return request.session == id; });
    sessions_.erase(id);
    tickets.release(id);
    serve_waiting(answers);
  }

  void settle(Answers& answers) override { serve_waiting(answers); }

 private:
  struct Request {
    uint64_t session = 0;
    uint64_t sequence = 0;
    uint32_t rank = 0;
  };
  struct Session {
    uint32_t rank = 0;
    uint64_t sequence = 0;   // number of the last request
    uint64_t ticket = 0;     // ticket of its last request
    compute::LossSums sums;  // sums of its last request
    uint64_t seen = 0;       // the shard's step when the session got its parameters
    uint64_t clock = 0;      // applied pushes, counted from the slowest member's clock at its start
    bool working = false;    // shard 0: holds a ticket, not yet pushed
    // Shard 0 of several: ticket applied here, perhaps not yet on other shards.
    std::optional<uint64_t> last;
  };

  // Each request of a session counts once, also a pull, because it takes a ticket. Returns null for
  // a repeated request.
  Session* attend(uint64_t id, const PushHeader& header) {
    const auto [at, is_new] = sessions_.try_emplace(id);
    Session& session = at->second;
    if (is_new) enter(id, session, header.rank);
    if (header.sequence <= session.sequence) {
      count_repeated(header.sequence < session.sequence ||
                     (session.ticket == header.ticket && same(session.sums, header.sums)));
      return nullptr;
    }
    session.sequence = header.sequence;
    session.ticket = header.ticket;
    session.sums = header.sums;
    // A member that asks again has the answers of all shards.
    if (session.last) note_done(*std::exchange(session.last, std::nullopt));
    return &session;
  }

  void note_done(uint64_t ticket) {
    tickets.done(ticket);
    if (shard.log().mode() != StandbyLog::Mode::off) done_.push_back(ticket);
  }

  // The session begins at the slowest member's clock, and takes the place of the session that had
  // its rank.
  void enter(uint64_t id, Session& session, uint32_t rank) {
    session.rank = rank;
    bool alone = true;
    for (auto& [other_id, other] : sessions_) {
      if (other_id == id) continue;
      session.clock = alone ? other.clock : std::min(session.clock, other.clock);
      alone = false;
      if (other.rank != rank) continue;
      other.working = false;
      tickets.release(other_id);
    }
  }

  void answer(const Request& request, Answer::Values values, Answers& answers) {
    if (!shard.settled()) return waiting_.push_back(request);
    Session& session = sessions_[request.session];
    Answer answer =
        ShardPolicy::make_answer(request.session, request.sequence, unseen_[request.rank]);
    answer.values = values;
    const bool assigned =
        shard.shape().shard > 0 || assign(request.session, session, answer.header);
    // If the member's last work may be missing on other shards, the member is told to ask again
    // instead of waiting.
    if (!assigned && !session.last) return waiting_.push_back(request);
    session.seen = shard.step();
    if (assigned) unseen_[request.rank] = {};
    answers.push_back(std::move(answer));
  }

  // Assigns work, or answers that there will be none. Returns false if neither is possible yet.
  bool assign(uint64_t id, Session& session, ReplyHeader& header) {
    if (!ahead(session)) header.ticket = tickets.take(id);
    session.working = header.ticket.has_value();
    header.finished = !header.ticket && tickets.finished();
    return header.ticket || header.finished;
  }

  bool ahead(const Session& session) const {
    return bounded_ && std::ranges::any_of(sessions_, [&](const auto& other) {
             return other.second.working && session.clock > other.second.clock &&
                    session.clock - other.second.clock > shard.shape().max_staleness;
           });
  }

  // Answers waiting requests if work was returned, the slowest member has caught up, or all work is
  // done.
  void serve_waiting(Answers& answers) {
    if (waiting_.empty()) return;
    auto waiting = std::exchange(waiting_, {});
    // The slowest member comes first, because its new work may mean that a member ahead of it gets
    // none.
    std::ranges::stable_sort(waiting, {},
                             [&](const Request& one) { return sessions_[one.session].clock; });
    for (const Request& one : waiting) answer(one, Answer::Values::current, answers);
  }

  const bool bounded_;
  std::vector<compute::LossSums> unseen_;  // sums applied since the last reply to each rank
  std::map<uint64_t, Session> sessions_;
  std::vector<Request> waiting_;  // requests waiting for work or for the last update to settle
  std::vector<uint64_t> done_;    // tickets done since the last update
};

}  // namespace

std::unique_ptr<ShardPolicy> make_async(ShardPolicy::Access access) {
  return std::make_unique<Asynchronous>(std::move(access), false);
}

std::unique_ptr<ShardPolicy> make_bounded_staleness(ShardPolicy::Access access) {
  return std::make_unique<Asynchronous>(std::move(access), true);
}

}  // namespace muster::ps
