#pragma once

#include "tests/unit/trainer/collective/protocol/books.h"
#include "tests/unit/trainer/simulation/world.h"

namespace muster::collective::protocol {

class Member;

// A collective job, run through one schedule.
class SimulatedJob : public World {
 public:
  using Setting = protocol::Setting;
  static constexpr const char* kVariable = "MUSTER_COLLECTIVE";

  SimulatedJob(const Schedule<Setting>& schedule, bool traced);
  ~SimulatedJob() override { end_processes(); }

  const Setting& setting() const { return setting_; }
  Books& books() { return books_; }
  std::string host_of(const Place& place) const override;
  // Returns whether every process that can has told this rank 0 where it stands: who is missing
  // will not come soon.
  bool all_attend(int chief) const;
  // Called when a generation runs from here on. Throws Violation if it should begin with something
  // else.
  void opened(const CollectivePlan& plan);

 private:
  std::unique_ptr<Process> make(const Seat& seat, int id, int attempt) override;
  void disturb(const Deviation& deviation) override;
  void check_end() const override;

  void grow();
  void shrink();
  void quit(int argument);
  int staying() const;  // seats of an elastic group
  // Returns null if the process has ended.
  Member* member(int id) const { return process(id) ? members_.at(id) : nullptr; }

  const Setting setting_;
  Books books_;
  std::map<int, Member*> members_;  // by process
  int size_ = 0;                    // of the last generation
  uint64_t newest_ = 0;             // generation that was opened
};

}  // namespace muster::collective::protocol
