#pragma once

#include "tests/unit/trainer/ps/protocol/member.h"
#include "tests/unit/trainer/simulation/simulated_client.h"

namespace muster::ps::protocol {

class WorkerProcess : public Process {
 public:
  WorkerProcess(SimulatedJob& job, int id, Place place, int attempt);
  int threads() const override { return 2; }
  bool ready(int thread) const override;
  void act(int thread) override;
  void receive(int stream, Side side, Message message) override;

 private:
  enum Thread { kRendezvous, kTraining };
  bool may_end() const;

  SimulatedJob& job_;
  SimulatedClient client_;
  Member member_;
};

}  // namespace muster::ps::protocol
