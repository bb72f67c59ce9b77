#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "common/program/stopwatch.h"
#include "trainer/compute/parameter_layout.h"
#include "trainer/ps/transport/shard_link.h"
#include "trainer/ps/transport/shared_memory.h"

namespace muster::ps {

// The shard that a link leads to. The references must outlive the link.
struct LinkEnd {
  int shard = 0;
  int ps = 0;  // the ps that serves the shard
  compute::Range range;
  LinkBell& bell;
  const MemberMemory* memory = nullptr;  // shared with a shard of this host; may be null
};

// A member's exchange with all shards: decides what to send, and interprets the replies,
// independent of the transport. For one calling thread.
class Exchange {
 public:
  using Connect = std::function<std::unique_ptr<ShardLink>(const LinkEnd& end)>;

  enum class Outcome {
    ok,
    superseded,   // another generation began, or this member fell behind: join again
    broken,       // a shard was lost: join again
    interrupted,  // `stop` was requested
  };
  struct Result {
    explicit Result(Outcome what = Outcome::ok) : outcome(what) {}
    Outcome outcome = Outcome::ok;
    // The number of committed updates in the parameters; with backup workers it may grow by several
    // at once.
    uint64_t step = 0;
    compute::LossSums sums;          // sums of all members, from shard 0
    std::optional<uint64_t> ticket;  // async: the number of the next work
    bool finished = false;           // async
  };
  // The conditions that end a wait early; `superseded` is asked a few times a second.
  struct Watch {
    std::stop_token stop;
    std::function<bool()> superseded;
  };

  // What the links to a ps have carried.
  struct Traffic {
    uint64_t answers = 0;
    uint64_t floats = 0;  // gradients sent and parameters asked for
    double seconds = 0;   // from asking to the answer, over all answers that wait() has waited for
  };

  // Links may share `memory` with shards; it must outlive the exchange and may be null. `backups`:
  // there are backup workers, so the shards may commit without some members.
  Exchange(std::vector<compute::Range> ranges, uint32_t rank, SyncPolicy policy, Connect connect,
           MemberMemory* memory = nullptr, bool backups = false);

  // Opens links to all shards for a generation, each to the ps that serves the shard (without
  // `serving`, the ps with the shard's number). Closes the old links, and renews the shared memory,
  // whose content is lost.
  void connect(uint64_t generation, const std::vector<int>& serving = {});
  void close();

  // Fetches the parameters that all shards agree on; with sync, the parameters of the lowest step
  // that a shard has committed last, which the other shards still hold. Throws Invalid (kProtocol)
  // if a shard rejects us.
  Result align(compute::PlacedFloats parameters, const Watch& watch);

  // Pushes gradient sums computed on the parameters of `step` and waits for the parameters after
  // it.
  Result step(uint64_t step, uint64_t ticket, const compute::LossSums& sums,
              compute::ConstPlacedFloats gradients, compute::PlacedFloats parameters,
              const Watch& watch);

  // The functions below do the same without waiting, for a caller that drives several members at
  // once: begin one operation, then call poll() whenever a link has changed, until it returns a
  // result. The memory must live until then. Preconditions: connected; nothing else is under way.
  void begin_align(compute::PlacedFloats parameters);
  void begin_step(uint64_t step, uint64_t ticket, const compute::LossSums& sums,
                  compute::ConstPlacedFloats gradients, compute::PlacedFloats parameters);
  std::optional<Result> poll();
  // Waits for the operation under way; also continues to wait after an interruption.
  Result wait(const Watch& watch);

  // By ps, since this object was made.
  const std::vector<Traffic>& traffic() const { return traffic_; }

 private:
  enum class Links { waiting, answered, broken };
  Links look() const;
  void note_answers(const Stopwatch& asked);
  void ask(size_t shard, compute::ConstPlacedFloats gradients, compute::PlacedFloats parameters);
  Result read() const;
  std::optional<Result> aligned(Result result);
  std::optional<Result> pushed(Result result);
  std::optional<Result> asked(Result result);
  bool agree(Result& result);
  void push_to(size_t begin, size_t end);
  void pull_from(size_t begin, size_t end);
  std::optional<Result> fetch_rest(const ReplyHeader& first);
  bool moved_on() const;
  PushHeader fresh_header() const;

  const std::vector<compute::Range> ranges_;
  const uint32_t rank_;
  // Whether the shards hand out work. If shard 0 has no work yet, it is asked again, which also
  // tells it that all shards have our push. A member that has waited for work fetches the
  // parameters of the other shards again.
  const bool asks_;
  // Whether there are backup workers. Shard 0 then gets our push after all other shards have it,
  // and answers with the parameters of its step and the members that contributed to the step. With
  // this answer the other shards are asked for their parameters of the same step, whether our push
  // is in it or not.
  const bool backups_;
  const Connect connect_;
  MemberMemory* const memory_;
  uint64_t generation_ = 0;
  uint64_t sequence_ = 0;
  // The request under way.
  enum class Phase {
    aligning,
    handing_over,   // with backup workers: sending our push to all shards except shard 0
    pushing,        // sending our push to all shards, or with backup workers to shard 0
    fetching,       // after falling behind: fetching shard 0's current parameters
    fetching_rest,  // fetching the others' parameters of that step; async: their newest
    asking,         // async: asking shard 0 for work
  };
  Phase phase_ = Phase::aligning;
  PushHeader header_;  // the last header sent
  uint64_t pushed_step_ = 0;
  compute::ConstPlacedFloats gradients_;  // the gradients of the push
  compute::PlacedFloats parameters_;      // the memory for the answers
  LinkBell bell_;                         // outlives the links
  std::vector<std::unique_ptr<ShardLink>> links_;
  std::vector<size_t> ps_;        // of each link
  std::vector<uint8_t> awaited_;  // by link: whether its answer is not noted in traffic_ yet
  std::vector<Traffic> traffic_;
};

}  // namespace muster::ps
