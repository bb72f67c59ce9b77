#pragma once

#include "tests/unit/trainer/ps/protocol/member.h"
#include "tests/unit/trainer/ps/protocol/saver.h"
#include "tests/unit/trainer/simulation/leader.h"
#include "trainer/ps/group/ps_formation.h"

namespace muster::ps::protocol {

// Rank 0: the rendezvous, the coordinator, a member and the writer of checkpoints, as
// loop::run_leader joins them.
class ChiefProcess : public Leader {
 public:
  ChiefProcess(SimulatedJob& job, int id, Place place, int attempt);
  int threads() const override { return 3; }
  bool ready(int thread) const override;
  void act(int thread) override;
  void receive(int stream, Side side, Message message) override;

 private:
  enum Thread { kCoordinating, kTraining, kSaving };
  enum class Copying { no, yes, final };

  void look() override { formation_.look(registry()); }
  void advance() override;
  bool may_advance() const override { return !opening_.active() || opening_.answered(); }
  void open();

  bool training() const;
  void train();
  void copy(Copying what);
  void ask_for_copies(size_t count);
  void copied();
  void save_or_end();

  SimulatedJob& job_;
  PsFormation formation_;
  ControlCalls opening_;

  Member member_;
  ControlCalls copying_calls_;
  std::vector<SnapshotReply> copies_;
  Copying copying_ = Copying::no;
  bool final_ = false;  // the final checkpoint is with the saver
  uint64_t copied_step_ = 0;
  Saver saver_;
};

}  // namespace muster::ps::protocol
