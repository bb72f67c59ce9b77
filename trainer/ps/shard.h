#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/checkpoint/epoch_sums.h"
#include "trainer/compute/optimizer.h"
#include "trainer/ps/block_update.h"
#include "trainer/ps/messages.h"
#include "trainer/ps/tickets.h"

namespace muster::ps {

// One shard of the parameters and what may happen to it: a state machine without network, clock or
// threads. Members reach it through sessions (a stream, or memory shared with it); a call returns
// the answers that have become due, for whichever sessions.
//
// sync: the pushes of one step are summed in rank order once all members' are there, divided by the
// rows of all and applied. The parameters of the step before stay readable, so that a member that
// lost its reply, or a shard beside this one that has not committed yet, can still be served.
// async: a push is applied when it comes. Shard 0 hands out the work (tickets).
class Shard {
 public:
  enum class Policy { sync, async };

  struct Shape {
    int shard = 0;
    compute::Range range;
    Policy policy = Policy::sync;
  };

  // What a generation starts from. `parameters` and each slot are range.size() floats.
  struct Content {
    std::vector<float> parameters;
    std::vector<std::vector<float>> slots;
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

  struct Counts {
    uint64_t commits = 0;
    uint64_t duplicates = 0;
    uint64_t stale = 0;       // of an earlier step: dropped
    uint64_t superseded = 0;  // of another generation: dropped
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
  // Opens a generation of `members` on what it holds. Who still waits is answered `superseded`.
  void begin(uint64_t generation, int members, Tickets tickets, Answers& answers);

  // A member's gradient sums.
  void push(uint64_t session, const PushHeader& header, const Buffers& buffers, Answers& answers);
  void pull(uint64_t session, const PushHeader& header, Answers& answers);
  // The session is lost. In sync what it pushed stays (copied: its memory goes); in async its
  // tickets are handed out again.
  void detach(uint64_t session, Answers& answers);

  uint64_t generation() const { return generation_; }  // 0: holds nothing
  uint64_t step() const { return step_; }
  uint64_t optimizer_t() const { return optimizer_t_; }
  const Tickets& tickets() const { return tickets_; }
  // Of what led to step(), and sync: to the step before.
  const checkpoint::EpochSums& sums() const { return sums_; }
  const checkpoint::EpochSums& sums_before() const { return sums_before_; }
  const Counts& counts() const { return counts_; }
  const Shape& shape() const { return shape_; }
  std::span<const float> parameters() const { return parameters_; }
  std::span<const float> previous() const { return previous_; }
  const std::vector<std::vector<float>>& slots() const { return slots_; }

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
    std::vector<float> kept;  // of an owner that is lost
  };
  struct Waiting {  // async: for work
    uint64_t session = 0;
    uint64_t sequence = 0;
    uint32_t rank = 0;
  };

  bool admissible(uint64_t session, const PushHeader& header, Answers& answers);
  void push_sync(uint64_t session, const PushHeader& header, const Buffers& buffers,
                 Answers& answers);
  void push_async(uint64_t session, const PushHeader& header, const Buffers& buffers,
                  Answers& answers);
  void commit(Answers& answers);
  void forget_pending();
  bool repeated(uint64_t session, const PushHeader& header);
  // False where nothing was updated, for want of rows.
  bool apply(const BlockUpdate::Buffers& buffers, int64_t rows, uint64_t schedule_step);
  void answer_async(uint64_t session, uint64_t sequence, uint32_t rank, Answer::Values values,
                    Answers& answers);
  void serve_waiting(Answers& answers);
  Answer make_answer(uint64_t session, uint64_t sequence, const compute::LossSums& sums) const;

  Shape shape_;
  BlockUpdate update_;
  const compute::Schedule& schedule_;
  uint64_t generation_ = 0;
  uint64_t step_ = 0;
  uint64_t optimizer_t_ = 0;
  uint64_t oldest_step_ = 0;  // previous_ is good for step_ - 1 >= oldest_step_
  std::vector<float> parameters_;
  std::vector<float> previous_;  // sync: after a commit
  std::vector<std::vector<float>> slots_;
  std::vector<std::span<float>> slot_views_;
  std::vector<std::span<const float>> gradient_views_;
  std::vector<std::span<float>> copy_views_;
  std::vector<Pending> pending_;  // sync, by rank
  compute::LossSums committed_;   // sync: sums of the last commit
  checkpoint::EpochSums sums_;
  checkpoint::EpochSums sums_before_;
  std::vector<compute::LossSums> unseen_;   // async, by rank: applied since its last reply
  std::map<uint64_t, uint64_t> sequences_;  // async: last sequence of a session
  std::vector<Waiting> waiting_;
  Tickets tickets_;
  Counts counts_;
};

}  // namespace muster::ps
