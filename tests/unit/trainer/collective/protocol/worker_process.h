#pragma once

#include "tests/unit/trainer/collective/protocol/member.h"

namespace muster::collective::protocol {

class WorkerProcess : public Process {
 public:
  WorkerProcess(SimulatedJob& job, int id, Place place, int attempt);
  int threads() const override { return 3; }
  bool ready(int thread) const override;
  void act(int thread) override;
  void receive(int stream, Side side, Message message) override;
  Member& member() { return member_; }

 private:
  enum Thread { kRendezvous, kTraining, kWatching };
  bool may_end() const;

  SimulatedJob& job_;
  Member member_;
};

}  // namespace muster::collective::protocol
