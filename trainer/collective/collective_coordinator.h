#pragma once

#include "trainer/collective/collective_formation.h"
#include "trainer/group/coordinator.h"

namespace muster::collective {

// The coordinator of a collective, run by rank 0.
class CollectiveCoordinator : public group::Coordinator {
 public:
  struct Setup : group::Coordinator::Setup {
    CollectiveFormation::Setup group;
  };

  // The references must outlive it.
  CollectiveCoordinator(group::RendezvousServer& rendezvous, const checkpoint::Store& store,
                        const Setup& setup);
  ~CollectiveCoordinator() override;

 private:
  group::Formation& formation() override { return formation_; }
  void look(const group::PeerRegistry& registry) override;
  void act() override;
  // Without elasticity a running generation waits for a lost member instead of ending.
  bool needs_all() const override { return !elastic_; }
  std::string change() const override { return "a member came, came back or was lost"; }
  void run();

  const bool elastic_;
  CollectiveFormation formation_;
  std::string why_unlinked_;  // value for the last generation
};

}  // namespace muster::collective
