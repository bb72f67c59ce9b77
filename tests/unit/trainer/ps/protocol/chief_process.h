#pragma once

#include <set>

#include "tests/unit/trainer/ps/protocol/member.h"
#include "tests/unit/trainer/ps/protocol/saver.h"
#include "trainer/group/peer_registry.h"
#include "trainer/ps/group/formation.h"

namespace muster::ps::protocol {

// Rank 0: the rendezvous, the coordinator, a member and the writer of checkpoints, as
// loop::run_leader joins them.
class ChiefProcess : public Process {
 public:
  ChiefProcess(World& world, int id, Place place, int attempt);
  int threads() const override { return 3; }
  bool ready(int thread) const override;
  void act(int thread) override;
  void receive(int stream, Message message) override;

 private:
  enum Thread { kCoordinating, kTraining, kSaving };
  enum class Copying { no, yes, final };

  void attend(int stream, const Message& message);
  void update(const std::function<void(GroupView&)>& change);

  bool coordinating() const;
  void coordinate();
  void advance();
  void choose();
  void open();

  bool training() const;
  void train();
  void copy(Copying what);
  void ask_for_copies(size_t count);
  void copied();
  void save_or_end();

  GroupView view_;
  group::PeerRegistry registry_;
  std::set<int> peers_;  // streams that were admitted
  bool registry_changed_ = true;
  bool leads_ = false;  // was looked at just now

  Formation formation_;
  ControlCalls opening_;
  std::string leased_;

  Member member_;
  ControlCalls copying_calls_;
  std::vector<SnapshotReply> copies_;
  Copying copying_ = Copying::no;
  bool final_ = false;  // the final checkpoint is with the saver
  uint64_t copied_step_ = 0;
  Saver saver_;
};

}  // namespace muster::ps::protocol
