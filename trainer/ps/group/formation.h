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

// Returns true if the group of `view` has gone on without a member of `generation`, or has ended.
bool left_behind(const GroupView& view, uint64_t generation);

// Returns which ps serves each of `shards`, according to the view.
std::vector<int> serving_of(const GroupView& view, int shards);

// Returns the step at which every shard was copied, if it is at least `least`; nothing if the steps
// differ because a commit is under way. `copies` must not be empty.
std::optional<uint64_t> common_step(const std::vector<SnapshotReply>& copies, uint64_t least);

// How rank 0 opens generations on parameter servers. The shards keep their state if all of it is of
// one lineage: since the last generation that loaded a state, all shards have made the same
// commits, and none is more than one ahead of another (sync; asynchronous shards count each for
// itself).
//
// With two copies ps i is home to shard i and to the shard before it. A copy counts if it serves or
// is whole, and if no member has been in a later generation than the one it was opened in: it then
// has everything that any member has heard of. If a ps is lost while every shard has such a copy
// elsewhere, it is not waited for: the next generation is opened on those copies. A ps that comes
// without a copy is named as the standby of the shards it is home to, in the running generation.
// After the two copies of a shard have turned out to differ, a checkpoint is restored.
class Formation : public group::Formation {
 public:
  struct Opening {
    int ps = 0;
    OpenRequest request;
  };

  // `common` has the fields equal in all openings. `copies` is the number of copies of each shard,
  // 1 or 2.
  Formation(int shards, bool sync, OpenRequest common, int copies = 1);

  void look(const group::PeerRegistry& registry);
  void claimed(uint64_t generation) override;
  void fenced() { proceed(Next::gather); }
  void chosen(const std::optional<Checkpoint>& newest) override;
  // The fields common to this generation's openings, and the openings themselves.
  const OpenRequest& request() const { return request_; }
  const std::vector<Opening>& openings() const { return openings_; }
  void opened(const std::vector<OpenReply>& replies);  // of each opening
  // Which ps serves each shard.
  std::vector<int> serving() const;
  void announce(GroupView& view) const;  // an ended view stays ended
  void announced();

  // Returns the step from which the present generation goes on.
  uint64_t step() const { return step_; }

 private:
  struct Place {
    int ps = 0;
    int standby = 0;
    uint64_t standby_incarnation = 0;  // 0: none
    uint64_t coupling = 0;             // with the standby; 0: that has no copy yet
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
  uint64_t announced_ = 0;              // the last generation that this leader announced
  uint64_t since_ = 0;                  // copies last opened in an earlier generation do not count
  std::vector<uint64_t> incarnations_;  // by ps, those present; 0: absent
  std::vector<Place> places_;           // by shard
  std::vector<Copy> opened_;            // states replied to the openings: reports come later
  bool torn_ = false;                   // the shards' states have turned out not to be of one step
  uint64_t differing_ = 0;  // the newest lineage of which the two copies of a shard differ
  OpenRequest request_;
  std::vector<Opening> openings_;
  uint64_t step_ = 0;       // from which the group goes on
  EpochSumsMessages sums_;  // of what led to `step_`
};

}  // namespace muster::ps
