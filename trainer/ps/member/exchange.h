#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/compute/parameter_layout.h"
#include "trainer/ps/transport/shard_link.h"
#include "trainer/ps/transport/shared_memory.h"

namespace muster::ps {

// Where a link is to lead. The references outlive it.
struct LinkEnd {
  int shard = 0;
  int ps = 0;  // which serves it
  compute::Range range;
  Bell& bell;
  const MemberMemory* memory = nullptr;  // to share with a shard of this host; or none
};

// A member's exchange with all shards: what to send and what the replies mean, without knowing what
// carries them. One caller.
class Exchange {
 public:
  using Connect = std::function<std::unique_ptr<ShardLink>(const LinkEnd& end)>;

  enum class Outcome {
    ok,
    superseded,   // another generation, or we have fallen behind: join again
    broken,       // a shard was lost: join again
    interrupted,  // `stop` was requested
  };
  struct Result {
    explicit Result(Outcome what = Outcome::ok) : outcome(what) {}
    Outcome outcome = Outcome::ok;
    // Committed updates in the parameters; with backup workers perhaps several more than before.
    uint64_t step = 0;
    compute::LossSums sums;          // of all members, as shard 0 has them
    std::optional<uint64_t> ticket;  // async: the next work
    bool finished = false;           // async
  };
  // What ends a wait early; `superseded` is asked a few times a second.
  struct Watch {
    std::stop_token stop;
    std::function<bool()> superseded;
  };

  // `memory`: what links may share with shards; outlives the exchange; may be null. `backups`:
  // whether the shards commit without backup workers.
  Exchange(std::vector<compute::Range> ranges, uint32_t rank, SyncPolicy policy, Connect connect,
           MemberMemory* memory = nullptr, bool backups = false);

  // Opens links to all shards for a generation, each at the ps that serves it
  // (without `serving` the one of its number), dropping what was open, on fresh memory: what lies
  // in the shared one is lost.
  void connect(uint64_t generation, const std::vector<int>& serving = {});
  void close();

  // Fetches the parameters all shards agree on: sync: of the lowest step that any has committed,
  // which the others still hold. Throws Invalid (kProtocol) where a shard rejects us.
  Result align(std::span<float> parameters, const Watch& watch);

  // Pushes gradient sums computed on the parameters of `step` and waits for the parameters after
  // it.
  Result step(uint64_t step, uint64_t ticket, const compute::LossSums& sums,
              std::span<const float> gradients, std::span<float> parameters, const Watch& watch);

  // The same without waiting, for whoever drives several members at once: begin one of them, then
  // poll() whenever a link has changed, until it says what it has come to. The spans must live
  // until then. Preconditions: connected; nothing else is under way.
  void begin_align(std::span<float> parameters);
  void begin_step(uint64_t step, uint64_t ticket, const compute::LossSums& sums,
                  std::span<const float> gradients, std::span<float> parameters);
  std::optional<Result> poll();
  // Waits for what has been begun, or goes on waiting for what was interrupted.
  Result wait(const Watch& watch);

 private:
  enum class Links { waiting, answered, broken };
  Links look() const;
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
  std::span<float> part(std::span<float> whole, size_t shard) const;

  const std::vector<compute::Range> ranges_;
  const uint32_t rank_;
  // The shards hand out work, and shard 0 may have none yet. It is asked again then, which also
  // says that all shards have what we pushed; who has waited for work fetches the others'
  // parameters again.
  const bool asks_;
  // Shard 0 gets our push once all others hold it, and answers with the parameters of the step that
  // it is at and whom it was made of: with that the others are asked for theirs, whether our push
  // is in it or not.
  const bool backups_;
  const Connect connect_;
  MemberMemory* const memory_;
  uint64_t generation_ = 0;
  uint64_t sequence_ = 0;
  // What is under way.
  enum class Phase {
    aligning,
    handing_over,   // with backup workers: our push to all shards but shard 0
    pushing,        // to all shards, or with backup workers to shard 0
    fetching,       // left behind: what shard 0 has now
    fetching_rest,  // the others' parameters, of that step; async: their newest
    asking,         // async: shard 0 for work
  };
  Phase phase_ = Phase::aligning;
  PushHeader header_;  // the last one sent
  uint64_t pushed_step_ = 0;
  std::span<const float> gradients_;  // of the push
  std::span<float> parameters_;       // where its answers go
  Bell bell_;                         // outlives the links
  std::vector<std::unique_ptr<ShardLink>> links_;
};

}  // namespace muster::ps
