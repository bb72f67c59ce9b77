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

// How rank 0 forms the generations of a collective. A generation begins with the state of the
// member that has got furthest; the others copy it from there. After members have found that their
// states differ, it begins with a checkpoint. Without elasticity a generation has
// all members, and waits for one that is lost. An elastic group goes on with the members that are
// present, and takes in new ones; a member that is leaving is kept while the others are too few.
class Formation : public group::Formation {
 public:
  using Time = group::PeerRegistry::Time;
  // How long an elastic group waits for the members that the job began with, and for survivors to
  // come back, before it begins without them.
  static constexpr std::chrono::milliseconds kMuster = group::PeerRegistry::kSilence;

  // This says where members' GPUs may exchange gradients themselves, which is not encrypted.
  enum class Link { on_one_host, anywhere };

  struct Setup {
    int members = 1;   // at the start of the job
    int least = 0;     // an elastic group's minimum; 0: exactly `members`
    int replicas = 0;  // logical; 0: `devices` for each member
    int devices = 1;
    Link link = Link::on_one_host;
  };

  Formation(const Setup& setup, Time now) : setup_(setup), since_(now) {}

  void look(const group::PeerRegistry& registry, Time now);
  void claimed(uint64_t generation) override;
  // `published` is the newest generation that has published a checkpoint; 0: none.
  void fenced(uint64_t published);
  void chosen(const std::optional<Checkpoint>& newest) override;
  const CollectivePlan& plan() const { return plan_; }
  // Returns why the plan has no links between the members' GPUs; "" if it has, or if there are none
  // to be linked.
  const std::string& why_unlinked() const { return why_unlinked_; }
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
