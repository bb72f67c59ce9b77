#pragma once

#include <functional>
#include <string>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/group/coordinator.h"
#include "trainer/ps/group/control.h"
#include "trainer/ps/group/formation.h"

namespace muster::ps {

// Rank 0's duty to the shards: waits for them, opens a generation on them and does so again
// whenever one comes back without its state.
class Coordinator : public group::Coordinator {
 public:
  struct Setup : group::Coordinator::Setup {
    int shards = 1;
    std::vector<std::string> addresses;  // of each ps, until it says so itself
    int copies = 1;                      // of each shard
    bool sync = true;
    OpenRequest request;                  // all that is the same in each opening
    std::function<void()> shard_leaving;  // a shard waits for a checkpoint
  };

  // The references must outlive it.
  Coordinator(group::RendezvousServer& rendezvous, Control& control, const checkpoint::Store& store,
              Setup setup);
  ~Coordinator() override;

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
  Formation formation_;
  std::vector<std::string> addresses_;  // of each ps, as it said last
  int replicated_ = 0;                  // shards, when we last told
  bool asked_ = false;                  // for a checkpoint, by a shard that leaves
};

}  // namespace muster::ps
