#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/group/formation.h"
#include "trainer/group/peer_registry.h"
#include "trainer/ps/shard/messages.h"

namespace muster::ps {

// True where the group of `view` has gone on without a member of `generation`, or has ended.
bool left_behind(const GroupView& view, uint64_t generation);

// Which ps serves each of `shards`, as the view has it.
std::vector<int> serving_of(const GroupView& view, int shards);

// The step at which every shard was copied, at least `least`; nothing where they differ: a commit
// is under way. `copies` is not empty.
std::optional<uint64_t> common_step(const std::vector<SnapshotReply>& copies, uint64_t least);

// How rank 0 opens generations on parameter servers. What the shards hold is kept if all of it is
// of one lineage: since the last generation that loaded something, all have gone through the same
// commits, and none is more than one ahead of another (sync; asynchronous shards count each for
// itself).
//
// With two copies ps i is home to shard i and to the one before it. A copy counts if it serves, or
// is whole, and if no member has been in a later generation than it was opened in: then it has all
// that any member has heard of. A ps that is lost while every shard has such a copy elsewhere is
// not waited for: the next generation is opened on those. One that comes without a copy is named as
// the standby of the shards it is home to, in the generation that runs.
class Formation : public group::Formation {
 public:
  struct Opening {
    int ps = 0;
    OpenRequest request;
  };

  // `common`: all that is the same in each opening. `copies`: of each shard, 1 or 2.
  Formation(int shards, bool sync, OpenRequest common, int copies = 1);

  void look(const group::PeerRegistry& registry);
  void claimed(uint64_t generation) override;
  void fenced() { next_ = Next::gather; }
  void chosen(const std::optional<Checkpoint>& newest) override;
  // What every opening of this generation says, and each of them.
  const OpenRequest& request() const { return request_; }
  const std::vector<Opening>& openings() const { return openings_; }
  void opened(const std::vector<OpenReply>& replies);  // of each opening
  // Which ps serves each shard.
  std::vector<int> serving() const;
  void announce(GroupView& view) const;  // one that has ended stays so
  void announced();

  // The step from which the present generation goes on.
  uint64_t step() const { return step_; }

 private:
  struct Place {
    int ps = 0;
    int standby = 0;
    uint64_t standby_incarnation = 0;  // 0: none
    uint64_t coupling = 0;             // with the standby; 0: it is no copy yet
  };
  struct Copy {
    int ps = 0;
    uint64_t incarnation = 0;
    ShardState state;
  };

  void gather(const group::PeerRegistry& registry);
  bool overtaken(const group::PeerRegistry& registry) const;
  bool is_covered(const group::PeerRegistry& registry, int lost) const;
  void decide(const group::PeerRegistry& registry, bool all_here);
  bool keep(const group::PeerRegistry& registry, uint64_t lineage);
  std::vector<Copy> copies_of(const group::PeerRegistry& registry, int shard) const;
  bool counts(const ShardState& state, uint64_t lineage) const;
  int other_home(int shard, int ps) const;
  void prepare();
  bool name_standbys();
  bool welcome(const group::PeerRegistry& registry);

  const int shards_;
  const bool sync_;
  const OpenRequest common_;
  const int copies_;
  uint64_t announced_ = 0;              // the last generation that the group was told of by us
  uint64_t since_ = 0;                  // copies that were opened in none so late do not count
  std::vector<uint64_t> incarnations_;  // by ps, those that were there; 0: was not
  std::vector<Place> places_;           // by shard
  std::vector<Copy> opened_;            // what was said when it was opened: reports come later
  bool torn_ = false;                   // what the shards hold has turned out not to be of one step
  OpenRequest request_;
  std::vector<Opening> openings_;
  uint64_t step_ = 0;       // from which the group goes on
  EpochSumsMessages sums_;  // of what led to it
};

}  // namespace muster::ps
