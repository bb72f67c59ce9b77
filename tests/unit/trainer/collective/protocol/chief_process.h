#pragma once

#include <set>

#include "tests/unit/trainer/collective/protocol/member.h"
#include "tests/unit/trainer/collective/protocol/saver.h"
#include "trainer/collective/formation.h"
#include "trainer/group/peer_registry.h"

namespace muster::collective::protocol {

// Rank 0: the rendezvous, the coordinator, a member and the writer of checkpoints, as
// loop::run_leader joins them.
class ChiefProcess : public Process {
 public:
  ChiefProcess(World& world, int id, int rank, int attempt);
  int threads() const override { return 7; }
  bool ready(int thread) const override;
  void act(int thread) override;
  void receive(int stream, Side side, Message message) override;
  std::pair<uint64_t, uint64_t> held() const override;
  void leave() override {}
  bool attends(int) const override { return true; }

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

  void attend(int stream, const Message& message);
  void update(const std::function<void(GroupView&)>& change);
  int silent_stream() const;

  bool coordinating() const;
  void coordinate();
  void advance();
  void choose();
  void open();
  void abandon();

  bool training() const;
  void train();
  void end();

  GroupView view_;
  group::PeerRegistry registry_;
  std::set<int> peers_;  // streams that were admitted
  bool registry_changed_ = true;
  bool leads_ = false;  // was looked at just now
  bool mustered_ = false;
  bool renew_ = false;

  Formation formation_;
  std::string leased_;

  Member member_;
  Saver saver_;
  bool ending_ = false;  // the final checkpoint is with the saver
  uint64_t saved_step_ = 0;
};

}  // namespace muster::collective::protocol
