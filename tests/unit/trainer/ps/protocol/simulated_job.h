#pragma once

#include "tests/unit/trainer/ps/protocol/books.h"
#include "tests/unit/trainer/simulation/world.h"

namespace muster::ps::protocol {

// A parameter-server job, run through one schedule.
class SimulatedJob : public World {
 public:
  using Setting = protocol::Setting;
  static constexpr const char* kVariable = "MUSTER_PROTOCOL";

  SimulatedJob(const Schedule<Setting>& schedule, bool traced);
  ~SimulatedJob() override { end_processes(); }

  const Setting& setting() const { return setting_; }
  Books& books() { return books_; }
  // Returns the first event before which every shard had a whole second copy; 0: there was none.
  int covered_at() const { return covered_at_; }

 private:
  std::unique_ptr<Process> make(const Seat& seat, int id, int attempt) override;
  void disturb(const Deviation& deviation) override;
  void look(int event) override;
  void check_end() const override;
  void quit(int argument);
  void part(int ps, int copy);
  bool covered() const;

  const Setting setting_;
  Books books_;
  int covered_at_ = 0;
};

}  // namespace muster::ps::protocol
