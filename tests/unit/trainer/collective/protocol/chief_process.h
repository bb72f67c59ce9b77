#pragma once

#include "tests/unit/trainer/collective/protocol/member.h"
#include "tests/unit/trainer/collective/protocol/saver.h"
#include "tests/unit/trainer/simulation/leader.h"
#include "trainer/collective/collective_formation.h"

namespace muster::collective::protocol {

// Rank 0: the rendezvous, the coordinator, a member and the writer of checkpoints, as
// loop::run_leader joins them.
class ChiefProcess : public Leader {
 public:
  ChiefProcess(SimulatedJob& job, int id, Place place, int attempt);
  int threads() const override { return 7; }
  bool ready(int thread) const override;
  void act(int thread) override;
  void receive(int stream, Side side, Message message) override;
  Member& member() { return member_; }

 private:
  enum Thread {
    kCoordinating,
    kTraining,
    kSaving,
    kRendezvous,
    kWatching,
    kSilence,  // looks for members that have not been heard of for too long
    kMuster,   // has waited for long enough for members to come
  };

  void look() override;
  void advance() override;
  checkpoint::Position resume_at(const checkpoint::Position& position) const override;
  void open();

  bool training() const;
  void train();
  void end();

  SimulatedJob& job_;
  CollectiveFormation formation_;
  bool mustered_ = false;
  Member member_;
  Saver saver_;
  bool ending_ = false;  // the final checkpoint is with the saver
  uint64_t saved_step_ = 0;
};

}  // namespace muster::collective::protocol
