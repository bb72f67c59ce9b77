#pragma once

#include <array>
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

// One shard of the parameters and its protocol: a state machine without network or clock. Its
// threads only share the arithmetic of an update. Members reach it through sessions (a stream, or
// memory shared with it); a call returns the answers that have become due, for any sessions.
//
// The shard holds parameters, slots and sums, updates them, and logs the updates. Its policy
// decides when an update is made, from which pushes, and which requests are answered when.
//
// Another process may hold a second copy, a standby: each update (the sum of its gradients and its
// other changes) is added to log(), and in the other process follow() makes the same step on the
// copy, by the same arithmetic. Answers that show an update wait until the update is settled.
class Shard {
 public:
  struct Shape {
    int shard = 0;
    compute::Range range;
    SyncPolicy policy = SyncPolicy::sync;
    int shards = 1;
    uint32_t backup_workers = 0;  // sync
    uint64_t max_staleness = 0;   // bounded_staleness
    // Gradients count as rounded to bfloat16, and parameters are rounded when they are delivered to
    // members. The shard's own parameters stay float32.
    bool bfloat16 = false;
  };

  // The content that a generation starts with. `parameters` and each slot have range.size() floats.
  struct Content {
    compute::Floats parameters;
    std::vector<compute::Floats> slots;
    uint64_t step = 0;
    uint64_t optimizer_t = 0;
    checkpoint::EpochSums sums;  // sums of the training up to `step`
  };

  struct Answer {
    uint64_t session = 0;
    ReplyHeader header;
    // The parameters in the answer; `delivered`: they are in Buffers::parameters already.
    enum class Values { none, current, previous, delivered } values = Values::none;
  };
  using Answers = std::vector<Answer>;

  // Everything that a copy needs to continue from here. The values are in ForwardState's order, one
  // after the other. They are lent, and can be read in place as long as needed.
  struct State {
    ForwardState header;
    std::vector<Lendable::Loan> values;
  };

  struct Counts {
    uint64_t commits = 0;
    uint64_t duplicates = 0;
    uint64_t conflicting = 0;  // repeated pushes with other content
    uint64_t stale = 0;        // dropped pushes of an earlier step
    uint64_t superseded = 0;   // dropped requests of another generation
    uint64_t left_out = 0;     // members missing in committed steps (backup workers)
    uint64_t pushes = 0;       // pushes that were applied one by one
    // For the pushes applied one by one: the staleness, which is the number of updates between the
    // parameters of a push and its application. The sum over all pushes; and the number of pushes
    // with a staleness of 0, of 1, of up to 3, of up to 7 and so on, the last for all above.
    uint64_t staleness = 0;
    std::array<uint64_t, 12> by_staleness{};
    void add_staleness(uint64_t staleness_of_push);
    uint64_t held_back = 0;  // pushes whose member was too far ahead for more work
    uint64_t differing = 0;  // snapshots for which the second copy had another state

    Counts& operator+=(const Counts& other);
  };

  // A session's memory, range.size() floats each, which the shard's device can address. The shard
  // reads `gradients` and writes `parameters`, if any, until the push is answered or the session is
  // detached; nothing else may change them meanwhile.
  struct Buffers {
    compute::ConstPlacedFloats gradients;
    compute::PlacedFloats parameters;  // gets the new parameters during the update; may be empty
  };

  // A shard on the CPU. `threads` is the number of threads that apply an update if all members wait
  // for it. References must outlive the shard. Throws Unavailable if the system gives no threads.
  Shard(Shape shape, const compute::Optimizer& optimizer, const compute::Schedule& schedule,
        int threads = 1);
  // A shard on the device of `update`.
  Shard(Shape shape, const compute::Optimizer& optimizer, const compute::Schedule& schedule,
        std::unique_ptr<ShardUpdate> update);
  ~Shard();
  Shard(const Shard&) = delete;  // its policy has its address

  // Takes over `content`, which is served only after begin().
  void load(Content content);
  // Opens a generation of `members` on the shard's content. Members that still wait are answered
  // `superseded`, as are requests that come while the shard is not `serving`.
  void begin(uint64_t generation, int members, Tickets tickets, Answers& answers,
             bool serving = true);

  // A member's gradient sums.
  void push(uint64_t session, const PushHeader& header, const Buffers& buffers, Answers& answers);
  void pull(uint64_t session, const PushHeader& header, Answers& answers);
  // Ends a session. In lockstep the session's push stays (as a copy, because its memory goes away);
  // otherwise its tickets are handed out again.
  void detach(uint64_t session, Answers& answers);

  // The updates that the standby has not acknowledged. After a change of the log call settle(),
  // which returns the answers that have become due.
  StandbyLog& log() { return log_; }
  const StandbyLog& log() const { return log_; }
  bool settled() const { return log_.settles(step_); }  // answers may show the last update
  void settle(Answers& answers);

  State state() const;
  // Takes over the state of a copy; returns false and changes nothing if the state does not fit the
  // shard.
  bool adopt(const ForwardState& header, std::span<const float> values);
  // Makes a step that the serving copy has made; returns false if it is not the next step. A
  // repeated step changes nothing.
  bool follow(const ForwardUpdate& update, std::span<const float> gradients);

  uint64_t generation() const { return generation_; }  // 0: holds nothing
  bool serving() const { return serving_; }
  bool used() const { return used_; }  // a member has come in this generation
  // Whether members make each step together. In this case all members wait for an update, so all
  // threads apply it, and the parameters and sums before it are kept.
  bool lockstep() const { return lockstep_; }
  uint64_t step() const { return step_; }
  uint64_t optimizer_t() const { return optimizer_t_; }
  const Tickets& tickets() const { return tickets_; }
  // sums(): the sums of the training up to step(). sums_before(): in lockstep, the sums up to the
  // step before. committed(): the sums of the last step only.
  const checkpoint::EpochSums& sums() const { return sums_; }
  const checkpoint::EpochSums& sums_before() const { return sums_before_; }
  const compute::LossSums& committed() const { return committed_; }
  const Counts& counts() const { return counts_; }
  void count_difference() { ++counts_.differing; }
  const Shape& shape() const { return shape_; }
  std::span<const float> parameters() const { return versions_.current(); }
  std::span<const float> previous() const { return versions_.previous(); }
  // Returns the same parameters as loans, which can be read in place as long as needed.
  const Versions& versions() const { return versions_; }
  std::vector<std::span<const float>> slots() const;
  // The shard's content at this step, lent: it can be read in place as long as needed.
  struct Image {
    Versions::Loan parameters;
    std::vector<Versions::Loan> slots;

    uint32_t digest() const;  // the CRC-32C of the parameters and each slot
  };
  Image image() const;

 private:
  bool admits(uint64_t session, const PushHeader& header, Answers& answers);
  bool apply(const ForwardUpdate& update, ShardUpdate::Gradients gradients,
             ShardUpdate::Copies copies);
  bool take_step(const ForwardUpdate& update, ShardUpdate::Buffers buffers);

  Shape shape_;
  std::unique_ptr<ShardUpdate> update_;
  const compute::Schedule& schedule_;
  size_t slot_count_;
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
  std::unique_ptr<ShardPolicy> policy_;
  const bool lockstep_;
};

}  // namespace muster::ps
