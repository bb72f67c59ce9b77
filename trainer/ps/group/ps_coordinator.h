#pragma once

#include <functional>
#include <string>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/group/coordinator.h"
#include "trainer/ps/group/control.h"
#include "trainer/ps/group/ps_formation.h"

namespace muster::ps {

// Rank 0's coordinator of the shards: waits for the shards, opens a generation on them, and opens
// another whenever a shard comes back without its state.
class PsCoordinator : public group::Coordinator {
 public:
  struct Setup : group::Coordinator::Setup {
    int shards = 1;
    std::vector<std::string> addresses;  // address of each ps until it reports its own
    int copies = 1;                      // copies of each shard
    bool sync = true;
    OpenRequest request;                  // the fields equal in all openings
    std::function<void()> shard_leaving;  // called when a shard waits for a checkpoint
  };

  // The references must outlive it.
  PsCoordinator(group::RendezvousServer& rendezvous, Control& control,
                const checkpoint::Store& store, Setup setup);
  ~PsCoordinator() override;

 private:
  group::Formation& formation() override { return formation_; }
  void look(const group::PeerRegistry& registry) override { formation_.look(registry); }
  void act() override;
  void watch() override;
  std::string change() const override { return "a shard came back, was lost or was taken"; }
  void announce();
  void locate();
  void tell_copies();
  void listen_to_leaving();

  Control& control_;
  const Setup setup_;
  PsFormation formation_;
  std::vector<std::string> addresses_;  // last reported address of each ps
  int replicated_ = 0;                  // replicated shards in the last report
  bool asked_ = false;                  // a leaving shard has asked for a checkpoint
};

}  // namespace muster::ps
