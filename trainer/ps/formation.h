#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/group/roster.h"
#include "trainer/ps/messages.h"

namespace muster::ps {

// True where the group of `view` has gone on without a member of `generation`, or has ended.
bool left_behind(const GroupView& view, uint64_t generation);

// The step at which every shard was copied, at least `least`; nothing where they differ: a commit
// is under way. `copies` is not empty.
std::optional<uint64_t> common_step(const std::vector<SnapshotReply>& copies, uint64_t least);

// Rank 0's way to a generation, and what makes it open the next: a state machine without files,
// network or clock. Whoever drives it does what next() says and then calls what that says; an
// Unavailable on the way is failed().
//
// The order fences: a generation is claimed first, by which a rank 0 that was taken for lost learns
// that it was replaced, and begins to publish no more; then what it has begun is ended; only then
// does anybody look at what there is. What the shards hold is kept if all of it is of one lineage:
// since the last generation that loaded something, all have gone through the same commits, and none
// is more than one ahead of another (sync; asynchronous shards count each for itself).
class Formation {
 public:
  enum class Next {
    claim,     // a generation above above(), unless superseded_by() what is claimed: claimed()
    fence,     // nothing that an earlier generation's writer has begun may be published: fenced()
    gather,    // shards are missing: look() when the roster changes
    choose,    // the newest whole checkpoint: chosen()
    open,      // request() to every shard: opened()
    announce,  // announce() to the group: announced()
    watch,     // the generation runs: look() when the roster changes
  };

  // `common`: all that is the same in each opening.
  Formation(int shards, bool sync, OpenRequest common);

  Next next() const { return next_; }
  void look(const group::Roster& roster);

  uint64_t above() const { return above_; }
  // The newest generation that anybody has claimed: true if that is not us any more. To be asked
  // before claiming, and from time to time while looking.
  bool superseded_by(uint64_t newest) const { return generation_ > 0 && newest > generation_; }
  void claimed(uint64_t generation);
  void fenced();
  struct Checkpoint {
    std::string folder;  // below the job's storage
    PositionMessage position;
  };
  void chosen(const std::optional<Checkpoint>& newest);
  const OpenRequest& request() const { return request_; }
  void opened(const std::vector<OpenReply>& replies);
  void announce(GroupView& view) const;  // one that has ended stays so
  void announced();
  void failed();
  void renew() { next_ = Next::claim; }  // while watching: the next generation is wanted anyway
  // What the group is told while there is no generation, and when there will be none from us: so
  // that whoever attends looks for our successor.
  static void suspend(GroupView& view);
  static void step_down(GroupView& view);

  // The step from which the present generation goes on.
  uint64_t step() const { return step_; }
  // Why the present generation was opened as it was; for the log.
  const std::string& reason() const { return reason_; }

 private:
  struct Seat {
    uint64_t incarnation = 0;
    ShardState state;
  };
  void gather(const group::Roster& roster);
  bool overtaken(const group::Roster& roster) const;
  void decide();

  const int shards_;
  const bool sync_;
  const OpenRequest common_;
  Next next_ = Next::claim;
  uint64_t generation_ = 0;  // ours
  uint64_t above_ = 0;
  std::vector<Seat> seats_;
  bool torn_ = false;  // what the shards hold has turned out not to be of one step
  OpenRequest request_;
  uint64_t step_ = 0;       // from which the group goes on
  EpochSumsMessages sums_;  // of what led to it
  std::string reason_;
};

}  // namespace muster::ps
