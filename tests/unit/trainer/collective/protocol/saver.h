#pragma once

#include "tests/unit/trainer/collective/protocol/simulated_job.h"
#include "tests/unit/trainer/simulation/saver.h"

namespace muster::collective::protocol {

// Writes everything itself, in one turn.
class Saver : public simulation::Saver {
 public:
  Saver(SimulatedJob& job, int id) : simulation::Saver(job, id), job_(job) {}

  void begin(uint64_t generation, const State& state, bool final);

 private:
  bool write(const SimulatedStorage::Folder& folder, const std::string& temporary) override;

  SimulatedJob& job_;
};

}  // namespace muster::collective::protocol
