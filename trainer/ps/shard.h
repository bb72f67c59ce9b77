#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "trainer/checkpoint/epoch_sums.h"
#include "trainer/compute/optimizer.h"
#include "trainer/ps/block_update.h"
#include "trainer/ps/messages.h"
#include "trainer/ps/tickets.h"
#include "trainer/ps/twin_log.h"
#include "trainer/ps/versions.h"

namespace muster::ps {

// One shard of the parameters and what may happen to it: a state machine without network, clock or
// threads. Members reach it through sessions (a stream, or memory shared with it); a call returns
// the answers that have become due, for whichever sessions.
//
// sync: the pushes of one step are summed in a fixed tree over the ranks once all are there,
// divided by the rows of all and applied. The parameters of the step before stay readable, so that
// a member that lost its reply, or a shard beside this one that has not committed yet, can still be
// served.
//
// With backup workers shard 0 commits without the last of them, though never without rank 0, which
// takes checkpoints at its step boundary. Whom it has made a step of (the contributors) its answers
// say. The other shards have everybody's pushes before shard 0 has them: they hold them, with an
// answer at once and without parameters, until any member that wants the parameters after the step
// says who contributed. So a step is made of the same pushes everywhere, and nobody whose push is
// in it needs to live until it is committed. Whoever was passed over is answered with the newest
// parameters, and its gradients are lost.
//
// async: a push is applied when it comes. Shard 0 hands out the work (tickets). Where there are
// several shards, work is done once its member asks for more: then all shards have it.
//
// bounded_staleness: the same, but shard 0 gives no more work to a member whose clock (pushes
// applied) is more than max_staleness ahead of the slowest member that computes.
//
// Another process may hold a second copy, a twin: each update goes to its log(), as the sum of its
// gradients and what else it changes, and follow() takes the copy there the same step, by the same
// arithmetic. Answers that show an update wait until it is settled.
class Shard {
 public:
  enum class Policy { sync, async, bounded_staleness };

  struct Shape {
    int shard = 0;
    compute::Range range;
    Policy policy = Policy::sync;
    int shards = 1;
    uint32_t backup_workers = 0;  // sync
    uint64_t max_staleness = 0;   // bounded_staleness
    // Gradients count as rounded to bfloat16, and parameters are to reach members so: what the
    // shard delivers is. Its own stay float32.
    bool bfloat16 = false;
  };

  // What a generation starts from. `parameters` and each slot are range.size() floats.
  struct Content {
    compute::Floats parameters;
    std::vector<compute::Floats> slots;
    uint64_t step = 0;
    uint64_t optimizer_t = 0;
    checkpoint::EpochSums sums;  // of what led there
  };

  struct Answer {
    uint64_t session = 0;
    ReplyHeader header;
    // Which parameters go with it; `delivered`: those of Buffers::parameters, where they are
    // already.
    enum class Values { none, current, previous, delivered } values = Values::none;
  };
  using Answers = std::vector<Answer>;

  // All that a copy needs to go on from here; the values as ForwardState has them, one after the
  // other, to be read where they are for as long as it takes.
  struct State {
    ForwardState header;
    std::vector<Lendable::Loan> values;
  };

  struct Counts {
    uint64_t commits = 0;
    uint64_t duplicates = 0;
    uint64_t stale = 0;       // of an earlier step: dropped
    uint64_t superseded = 0;  // of another generation: dropped
    uint64_t left_out = 0;    // backup workers: members that a step was committed without
    // async: pushes applied; updates between a push's parameters and its application: sum, and
    // most.
    uint64_t pushes = 0;
    uint64_t staleness = 0;
    uint64_t most_staleness = 0;
    uint64_t held_back = 0;  // bounded_staleness: pushes whose member was too far ahead for more

    Counts& operator+=(const Counts& other);
  };

  // A session's memory, range.size() floats each. The shard reads the one and writes the other, if
  // any, until the push is answered or the session detached; nobody else changes them.
  struct Buffers {
    std::span<const float> gradients;
    std::span<float> parameters;  // the new ones, written within the update; or empty
  };

  // `threads`: to apply a synchronous update with, while all members wait for it. References must
  // outlive the shard. Throws Unavailable where the system gives no threads.
  Shard(Shape shape, const compute::Optimizer& optimizer, const compute::Schedule& schedule,
        int threads = 1);

  // Takes over `content`. Not served before begin().
  void load(Content content);
  // Opens a generation of `members` on what it holds. Who still waits is answered `superseded`, and
  // who comes while it is not `serving`.
  void begin(uint64_t generation, int members, Tickets tickets, Answers& answers,
             bool serving = true);

  // A member's gradient sums.
  void push(uint64_t session, const PushHeader& header, const Buffers& buffers, Answers& answers);
  void pull(uint64_t session, const PushHeader& header, Answers& answers);
  // The session is lost. In sync what it pushed stays (copied: its memory goes); in async its
  // tickets are handed out again.
  void detach(uint64_t session, Answers& answers);

  // What the twin has not acknowledged. After a change of it: settle(), which answers those for
  // whom it has become due.
  TwinLog& log() { return log_; }
  const TwinLog& log() const { return log_; }
  void settle(Answers& answers);

  State state() const;
  // Takes over a copy's state; false, and nothing is changed, where it does not fit the shard.
  bool adopt(const ForwardState& header, std::span<const float> values);
  // Takes the step that the shard took whose copy this is; false where it is not the next one. One
  // that has been taken already changes nothing.
  bool follow(const ForwardUpdate& update, std::span<const float> gradients);

  uint64_t generation() const { return generation_; }  // 0: holds nothing
  bool serving() const { return serving_; }
  bool used() const { return used_; }  // a member has come in this generation
  uint64_t step() const { return step_; }
  uint64_t optimizer_t() const { return optimizer_t_; }
  const Tickets& tickets() const { return tickets_; }
  // Of what led to step(), and sync: to the step before.
  const checkpoint::EpochSums& sums() const { return sums_; }
  const checkpoint::EpochSums& sums_before() const { return sums_before_; }
  const Counts& counts() const { return counts_; }
  const Shape& shape() const { return shape_; }
  std::span<const float> parameters() const { return versions_.current(); }
  std::span<const float> previous() const { return versions_.previous(); }
  // The same, to be read where they are for as long as it takes.
  const Versions& versions() const { return versions_; }
  std::vector<std::span<const float>> slots() const;
  // What it holds at this step, to be read where it is for as long as it takes.
  struct Image {
    Versions::Loan parameters;
    std::vector<Versions::Loan> slots;
  };
  Image image() const;

 private:
  struct Waiter {
    uint64_t session = 0;
    uint64_t sequence = 0;
    std::span<float> parameters;  // the session's
  };
  struct Pending {
    bool present = false;
    std::vector<Waiter> waiters;  // who is answered: a slow process and its successor both
    compute::LossSums sums;
    uint64_t ticket = 0;
    uint64_t owner = 0;  // the session whose memory `gradients` is
    std::span<const float> gradients;
    compute::Floats kept;  // of an owner that is lost, or of a push that is held
  };
  struct Waiting {  // async: for work; sync: for a step that shard 0 has committed already
    uint64_t session = 0;
    uint64_t sequence = 0;
    uint32_t rank = 0;
  };
  struct Session {  // async
    uint32_t rank = 0;
    uint64_t sequence = 0;         // of its last request
    uint64_t seen = 0;             // our count when it got its parameters
    uint64_t clock = 0;            // pushes applied, since the slowest's when it came
    bool working = false;          // shard 0: holds a ticket, not yet pushed
    std::optional<uint64_t> last;  // shard 0 of several: applied here, perhaps not yet elsewhere
  };

  bool admissible(uint64_t session, const PushHeader& header, Answers& answers);
  void push_sync(uint64_t session, const PushHeader& header, const Buffers& buffers,
                 Answers& answers);
  void push_async(uint64_t session, const PushHeader& header, const Buffers& buffers,
                  Answers& answers);
  void answer_late(uint64_t session, const PushHeader& header, Answers& answers);
  bool follows() const { return shape_.backup_workers > 0 && shape_.shard > 0; }
  void hold(const PushHeader& header, std::span<const float> gradients);
  bool choose(uint64_t session, const PushHeader& header, Answers& answers);
  bool complete() const;
  void commit_if_due(Answers& answers);
  void commit(Answers& answers);
  bool take_step(const ForwardUpdate& update);
  void append(const ForwardUpdate& update);
  bool settled() const { return log_.settles(step_); }
  void answer_settled(Answer answer, Answers& answers);
  void forget_pending();
  void pull_sync(uint64_t session, const PushHeader& header, Answers& answers);
  Session* attend(uint64_t id, const PushHeader& header);
  void enter(uint64_t id, Session& session, uint32_t rank);
  void measure(const Session& session);
  bool assign(uint64_t id, Session& session, ReplyHeader& header);
  bool ahead(const Session& session) const;
  // From the parameters before, with gradient_views_ or sum_; also to copy_views_. False where
  // nothing was updated, for want of rows.
  bool apply(std::span<const float> from, std::span<float> to, int64_t rows,
             uint64_t schedule_step);
  void note_done(uint64_t ticket);
  void answer_async(const Waiting& request, Answer::Values values, Answers& answers);
  void serve_waiting(Answers& answers);
  Answer make_answer(uint64_t session, uint64_t sequence, const compute::LossSums& sums) const;

  Shape shape_;
  BlockUpdate update_;
  const compute::Schedule& schedule_;
  size_t slot_count_;
  uint64_t generation_ = 0;
  bool serving_ = true;
  bool used_ = false;
  uint64_t step_ = 0;
  uint64_t optimizer_t_ = 0;
  uint64_t oldest_step_ = 0;  // previous() is good for step_ - 1 >= oldest_step_
  Versions versions_;         // a previous one: sync, after a commit
  std::vector<Versions> slots_;
  std::vector<std::span<const float>> slots_before_;
  std::vector<std::span<float>> slot_views_;
  std::vector<std::span<const float>> gradient_views_;
  std::span<const float> sum_;  // of gradients, where there is a twin
  std::vector<std::span<float>> copy_views_;
  std::vector<Pending> pending_;  // sync, by rank
  Contributors chosen_;           // where we follow: by shard 0, for the step
  compute::LossSums committed_;   // sync: sums of the last commit
  checkpoint::EpochSums sums_;
  checkpoint::EpochSums sums_before_;
  Contributors contributed_;               // to the last commit; none without backup workers
  std::vector<compute::LossSums> unseen_;  // async, by rank: applied since its last reply
  std::map<uint64_t, Session> sessions_;   // async
  std::vector<Waiting> waiting_;
  Tickets tickets_;
  std::vector<uint64_t> done_;  // async: tickets, since the last update
  TwinLog log_;
  Answers held_;  // sync: until the last commit is settled
  Counts counts_;
};

}  // namespace muster::ps
