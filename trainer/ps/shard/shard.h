#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/checkpoint/files/epoch_sums.h"
#include "trainer/compute/optimizer.h"
#include "trainer/compute/schedule.h"
#include "trainer/ps/shard/messages.h"
#include "trainer/ps/shard/shard_update.h"
#include "trainer/ps/shard/standby_log.h"
#include "trainer/ps/shard/tickets.h"
#include "trainer/ps/shard/versions.h"

namespace muster::ps {

class ShardPolicy;

// One shard of the parameters and its protocol: a state machine without network or clock, whose
// threads only share the arithmetic of an update. Members reach it through sessions (a stream, or
// memory shared with it); a call returns the answers that have become due, for any sessions.
//
// The shard holds parameters, slots and sums, updates them, and logs the updates. Its policy
// decides when there is an update, of which pushes, and who is answered when.
//
// Another process may hold a second copy, a standby: each update is added to log(), as the sum of
// its gradients and its other changes, and follow() makes the same step on the copy there, by the
// same arithmetic. Answers that show an update wait until it is settled.
class Shard {
 public:
  struct Shape {
    int shard = 0;
    compute::Range range;
    SyncPolicy policy = SyncPolicy::sync;
    int shards = 1;
    uint32_t backup_workers = 0;  // sync
    uint64_t max_staleness = 0;   // bounded_staleness
    // Gradients are treated as rounded to bfloat16, and parameters that the shard delivers to
    // members are rounded too. Its own stay float32.
    bool bfloat16 = false;
  };

  // The content that a generation starts with. `parameters` and each slot have range.size() floats.
  struct Content {
    compute::Floats parameters;
    std::vector<compute::Floats> slots;
    uint64_t step = 0;
    uint64_t optimizer_t = 0;
    checkpoint::EpochSums sums;  // of the training up to `step`
  };

  struct Answer {
    uint64_t session = 0;
    ReplyHeader header;
    // The parameters that go with it; `delivered`: they are in Buffers::parameters already.
    enum class Values { none, current, previous, delivered } values = Values::none;
  };
  using Answers = std::vector<Answer>;

  // Everything that a copy needs to go on from here. The values are in ForwardState's order, one
  // after the other; they are lent, and can be read in place for as long as needed.
  struct State {
    ForwardState header;
    std::vector<Lendable::Loan> values;
  };

  struct Counts {
    uint64_t commits = 0;
    uint64_t duplicates = 0;
    uint64_t conflicting = 0;  // pushes seen before, but with other content
    uint64_t stale = 0;        // pushes of an earlier step, which were dropped
    uint64_t superseded = 0;   // requests of another generation, which were dropped
    uint64_t left_out = 0;     // members that a step was committed without (backup workers)
    uint64_t pushes = 0;       // pushes that were each applied by itself
    // The number of updates between the parameters that such a push was computed on and its
    // application: the sum over all pushes, and the greatest.
    uint64_t staleness = 0;
    uint64_t most_staleness = 0;
    uint64_t held_back = 0;  // pushes whose member was too far ahead for more work
    uint64_t differing = 0;  // snapshots of which the second copy has had another state

    Counts& operator+=(const Counts& other);
  };

  // A session's memory, range.size() floats each. The shard reads `gradients` and writes
  // `parameters`, if any, until the push is answered or the session detached; nobody else changes
  // them meanwhile.
  struct Buffers {
    std::span<const float> gradients;
    std::span<float> parameters;  // the new ones, written within the update; or empty
    bool on_gpu = false;          // they lie in the memory of the GPU that keeps the shard
  };

  // A shard on the CPU. `threads` is the number of threads that apply an update if all members wait
  // for it. References must outlive the shard. Throws Unavailable if the system gives no threads.
  Shard(Shape shape, const compute::Optimizer& optimizer, const compute::Schedule& schedule,
        int threads = 1);
  // A shard that `update` keeps and updates.
  Shard(Shape shape, const compute::Optimizer& optimizer, const compute::Schedule& schedule,
        std::unique_ptr<ShardUpdate> update);
  ~Shard();
  Shard(Shard&&) noexcept;

  // Takes over `content`. It is not served before begin().
  void load(Content content);
  // Opens a generation of `members` on the shard's content. Members that still wait are answered
  // `superseded`, as are requests that come while the shard is not `serving`.
  void begin(uint64_t generation, int members, Tickets tickets, Answers& answers,
             bool serving = true);

  // A member's gradient sums.
  void push(uint64_t session, const PushHeader& header, const Buffers& buffers, Answers& answers);
  void pull(uint64_t session, const PushHeader& header, Answers& answers);
  // Ends a session. In lockstep its push stays (copied, as its memory goes away); otherwise its
  // tickets are handed out again.
  void detach(uint64_t session, Answers& answers);

  // The updates that the standby has not acknowledged. After a change of the log call settle(),
  // which gives the answers that have become due.
  StandbyLog& log() { return log_; }
  const StandbyLog& log() const { return log_; }
  bool settled() const { return log_.settles(step_); }  // answers may show the last update
  void settle(Answers& answers);

  State state() const;
  // Takes over a copy's state; returns false and changes nothing if it does not fit the shard.
  bool adopt(const ForwardState& header, std::span<const float> values);
  // Makes the step that the serving copy made; returns false if it is not the next one. A step made
  // already changes nothing.
  bool follow(const ForwardUpdate& update, std::span<const float> gradients);

  uint64_t generation() const { return generation_; }  // 0: holds nothing
  bool serving() const { return serving_; }
  bool used() const { return used_; }  // a member has come in this generation
  // Whether members make each step together. All then wait for an update, so all threads apply it,
  // and the parameters and sums before it are kept.
  bool lockstep() const { return lockstep_; }
  uint64_t step() const { return step_; }
  uint64_t optimizer_t() const { return optimizer_t_; }
  const Tickets& tickets() const { return tickets_; }
  // The sums of the training up to step(), in lockstep those up to the step before, and those of
  // the last step alone.
  const checkpoint::EpochSums& sums() const { return sums_; }
  const checkpoint::EpochSums& sums_before() const { return sums_before_; }
  const compute::LossSums& committed() const { return committed_; }
  const Counts& counts() const { return counts_; }
  void count_difference() { ++counts_.differing; }
  const Shape& shape() const { return shape_; }
  std::span<const float> parameters() const { return versions_.current(); }
  std::span<const float> previous() const { return versions_.previous(); }
  // Returns the same parameters as loans, which can be read in place for as long as needed.
  const Versions& versions() const { return versions_; }
  std::vector<std::span<const float>> slots() const;
  // The shard's content at this step, lent: it can be read in place for as long as needed.
  struct Image {
    Versions::Loan parameters;
    std::vector<Versions::Loan> slots;

    uint32_t digest() const;  // the CRC-32C of the parameters and each slot
  };
  Image image() const;

 private:
  friend class ShardPolicy;

  ShardPolicy& policy();
  bool admits(uint64_t session, const PushHeader& header, Answers& answers);
  bool apply(const ForwardUpdate& update, ShardUpdate::Gradients gradients,
             std::span<const std::span<float>> copies);
  bool take_step(const ForwardUpdate& update, ShardUpdate::Buffers buffers);
  compute::Floats floats(size_t count) const;

  Shape shape_;
  std::unique_ptr<ShardUpdate> update_;
  const compute::Schedule& schedule_;
  size_t slot_count_;
  std::unique_ptr<ShardPolicy> policy_;
  bool lockstep_;
  uint64_t generation_ = 0;
  size_t members_ = 0;
  bool serving_ = true;
  bool used_ = false;
  uint64_t step_ = 0;
  uint64_t optimizer_t_ = 0;
  Versions versions_;  // has a previous version in lockstep, after a step
  std::vector<Versions> slots_;
  std::vector<std::span<const float>> slots_before_;
  std::vector<std::span<float>> slot_views_;
  compute::LossSums committed_;
  checkpoint::EpochSums sums_;
  checkpoint::EpochSums sums_before_;
  Tickets tickets_;
  StandbyLog log_;
  Counts counts_;
};

}  // namespace muster::ps
