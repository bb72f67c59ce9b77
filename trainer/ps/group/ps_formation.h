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

// Whether the group of `view` has continued without a member of `generation`, or has ended.
bool left_behind(const GroupView& view, uint64_t generation);

// Returns which ps serves each of `shards`, according to the view.
std::vector<int> serving_of(const GroupView& view, int shards);

// Returns the step of all copies, if it is the same in all of them and at least `least`; nothing if
// the steps differ because a commit is under way. `copies` must not be empty.
std::optional<uint64_t> common_step(const std::vector<SnapshotReply>& copies, uint64_t least);

// Opens rank 0's generations on parameter servers. The shards keep their state if it is of one
// lineage: since the last generation that loaded a state, all shards have made the same commits,
// and no shard is more than one commit ahead of another (sync; asynchronous shards count
// separately).
//
// With two copies ps i is home to shard i and to the shard before it. A copy counts if it serves or
// is whole, and if no member has been in a later generation than the copy's: it then has every
// update that a member has heard of. If a ps is lost while every shard has such a copy on another
// ps, the lost ps is not waited for: the next generation is opened on those copies. A ps that comes
// without a copy becomes the standby of its home shards in the running generation. If the two
// copies of a shard differ, a checkpoint is restored.
class PsFormation : public group::Formation {
 public:
  struct Opening {
    int ps = 0;
    OpenRequest request;
  };

  // `common` has the fields equal in all openings. `copies` is the number of copies of each shard,
  // 1 or 2.
  PsFormation(int shards, bool sync, OpenRequest common, int copies = 1);

  void look(const group::PeerRegistry& registry);
  void claimed(uint64_t generation) override;
  void fenced() { proceed(Next::gather); }
  void chosen(const std::optional<Checkpoint>& newest) override;
  // The fields common to this generation's openings, and the openings themselves.
  const OpenRequest& request() const { return request_; }
  const std::vector<Opening>& openings() const { return openings_; }
  void opened(const std::vector<OpenReply>& replies);  // the reply of each opening
  // Which ps serves each shard.
  std::vector<int> serving() const;
  void announce(GroupView& view) const;  // an ended view stays ended
  void announced();

  // Returns the step from which the current generation continues.
  uint64_t step() const { return step_; }

 private:
  struct Place {
    int ps = 0;
    int standby = 0;
    uint64_t standby_incarnation = 0;  // 0: none
    uint64_t coupling = 0;             // coupling with the standby; 0: the standby has no copy yet
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
  uint64_t since_ = 0;                  // copies opened in an earlier generation do not count
  std::vector<uint64_t> incarnations_;  // by ps; 0: absent
  std::vector<Place> places_;           // by shard
  std::vector<Copy> opened_;            // states in the replies to the openings; reports come later
  bool torn_ = false;                   // the shards' states are not of one step
  uint64_t differing_ = 0;              // newest lineage with differing copies of a shard
  OpenRequest request_;
  std::vector<Opening> openings_;
  uint64_t step_ = 0;       // the step from which the group continues
  EpochSumsMessages sums_;  // sums of the training up to `step_`
};

}  // namespace muster::ps
