#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/muster/rendezvous.pb.h"
#include "trainer/group/formation.h"
#include "trainer/group/peer_registry.h"

namespace muster::collective {

// Forms the generations of a collective, on rank 0. A generation begins with the state of the
// member that has come furthest; the other members copy this state. If members have found that
// their states differ, it begins with a checkpoint. Without elasticity a generation has all
// members, and waits for a lost one. An elastic group continues with the members that are present,
// and adds new ones; a leaving member stays as long as the others are too few.
class CollectiveFormation : public group::Formation {
 public:
  using Time = group::PeerRegistry::Time;
  // How long an elastic group waits for the members that the job began with, and for survivors to
  // come back, before it begins without them.
  static constexpr std::chrono::milliseconds kMuster = group::PeerRegistry::kSilence;

  // Says where members' GPUs may exchange gradients directly, without encryption.
  enum class Link { on_one_host, anywhere };

  struct Setup {
    int members = 1;   // at the start of the job
    int least = 0;     // an elastic group's minimum; 0: exactly `members`
    int replicas = 0;  // logical replicas; 0: `devices` for each member
    int devices = 1;
    Link link = Link::on_one_host;
  };

  CollectiveFormation(const Setup& setup, Time now) : setup_(setup), since_(now) {}

  void look(const group::PeerRegistry& registry, Time now);
  void claimed(uint64_t generation) override;
  // `published` is the newest generation that has published a checkpoint; 0: none.
  void fenced(uint64_t published);
  void chosen(const std::optional<Checkpoint>& newest) override;
  const CollectivePlan& plan() const { return plan_; }
  // Returns why the plan does not link the members' GPUs; "" if it does, or if there are no GPUs to
  // link.
  const std::string& why_unlinked() const { return why_unlinked_; }
  // Tells the group of the plan or, with Next::run, that the generation runs. An ended view stays
  // ended.
  void announce(GroupView& view) const;
  void announced() { proceed(Next::assemble); }
  void running();

 private:
  bool elastic() const { return setup_.least > 0; }
  void gather(const group::PeerRegistry& registry, Time now);
  bool is_complete(size_t members, Time now) const;
  void decide(const group::PeerRegistry& registry);
  void assemble(const group::PeerRegistry& registry);
  bool outdated(const group::PeerRegistry& registry) const;
  bool is_planned(int rank) const;

  const Setup setup_;
  const Time since_;  // the time at which we became the leader
  uint64_t published_ = 0;
  bool formed_ = false;  // a generation has run under this leader
  std::string why_unlinked_;
  CollectivePlan plan_;
  std::pair<uint64_t, uint64_t> basis_;  // generation and step of the plan's first state
};

}  // namespace muster::collective
