#pragma once

#include "trainer/collective/formation.h"
#include "trainer/group/coordinator.h"

namespace muster::collective {

// Rank 0's duty to a collective.
class Coordinator : public group::Coordinator {
 public:
  struct Setup : group::Coordinator::Setup {
    Formation::Setup group;
  };

  // The references must outlive it.
  Coordinator(group::RendezvousServer& rendezvous, const checkpoint::Store& store,
              const Setup& setup);
  ~Coordinator() override;

 private:
  group::Formation& formation() override { return formation_; }
  void look(const group::PeerRegistry& registry) override;
  void act() override;
  // A generation does not end with a member that is away, if the others can wait for it.
  bool needs_all() const override { return !elastic_; }
  std::string change() const override { return "a member came, came back or was lost"; }
  void run();

  const bool elastic_;
  Formation formation_;
};

}  // namespace muster::collective
