#pragma once

#include <string>
#include <vector>

#include "tests/unit/trainer/ps/protocol/control_calls.h"
#include "tests/unit/trainer/simulation/saver.h"

namespace muster::ps::protocol {

// Has each shard written by the ps that serves it.
class Saver : public simulation::Saver {
 public:
  Saver(SimulatedJob& job, int id) : simulation::Saver(job, id), calls_(job, id) {}

  // `serving` says which ps has each shard.
  void begin(SimulatedStorage::Folder manifest, std::vector<uint64_t> shard_steps,
             std::vector<int> serving);
  bool receive(int stream, Message& message) { return calls_.receive(stream, message); }

 private:
  bool write(const SimulatedStorage::Folder& folder, const std::string& temporary) override;
  bool waits() const override { return calls_.active() && !calls_.answered(); }

  ControlCalls calls_;
  std::vector<uint64_t> shard_steps_;
  std::vector<int> serving_;
};

}  // namespace muster::ps::protocol
