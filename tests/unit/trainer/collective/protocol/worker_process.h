#pragma once

#include "tests/unit/trainer/collective/protocol/member.h"

namespace muster::collective::protocol {

class WorkerProcess : public Process {
 public:
  WorkerProcess(World& world, int id, int rank, int attempt);
  int threads() const override { return 3; }
  bool ready(int thread) const override;
  void act(int thread) override;
  void receive(int stream, Side side, Message message) override;
  std::pair<uint64_t, uint64_t> held() const override;
  void leave() override { member_.leave(); }
  bool attends(int chief) const override { return member_.client().attends(chief); }

 private:
  enum Thread { kRendezvous, kTraining, kWatching };
  bool may_end() const;

  Member member_;
};

}  // namespace muster::collective::protocol
