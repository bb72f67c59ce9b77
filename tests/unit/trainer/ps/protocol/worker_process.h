#pragma once

#include "tests/unit/trainer/ps/protocol/member.h"
#include "tests/unit/trainer/ps/protocol/simulated_client.h"

namespace muster::ps::protocol {

class WorkerProcess : public Process {
 public:
  WorkerProcess(World& world, int id, Place place, int attempt);
  int threads() const override { return 2; }
  bool ready(int thread) const override;
  void act(int thread) override;
  void receive(int stream, Message message) override;

 private:
  enum Thread { kRendezvous, kTraining };
  bool may_end() const;

  SimulatedClient client_;
  Member member_;
};

}  // namespace muster::ps::protocol
