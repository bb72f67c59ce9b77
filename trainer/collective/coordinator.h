#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "trainer/checkpoint/store.h"
#include "trainer/collective/formation.h"
#include "trainer/group/coordinator.h"

namespace muster::collective {

// Rank 0's duty to a collective: does what a Formation says.
class Coordinator : public group::Coordinator {
 public:
  struct Setup {
    std::filesystem::path storage;
    std::string job_uid;
    Formation::Setup group;
    // Where training goes on from a checkpoint. Throws Invalid where it cannot.
    std::function<checkpoint::Position(const checkpoint::Store::Found&)> resume_at;
  };

  // The references must outlive it.
  Coordinator(group::RendezvousServer& rendezvous, const checkpoint::Store& store, Setup setup);
  ~Coordinator() override;

 private:
  void advance() override;
  bool watching() const override { return formation_.next() == Formation::Next::watch; }
  void abandon() override;
  bool superseded_by(uint64_t newest) const override { return formation_.superseded_by(newest); }
  void wait();
  void choose();
  void announce();
  void run();

  const checkpoint::Store& store_;
  const Setup setup_;
  Formation formation_;
  std::unique_ptr<checkpoint::Store::Lease> lease_;  // on what is being restored
};

}  // namespace muster::collective
