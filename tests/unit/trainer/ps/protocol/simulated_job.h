#pragma once

#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/trainer/ps/protocol/process.h"
#include "tests/unit/trainer/ps/protocol/schedule.h"

namespace muster::ps::protocol {

// The counts of a run, so that a test can see that the simulator reaches the cases it is there for.
struct Outcome {
  int events = 0;
  int faults = 0;
  int restarts = 0;
  int generations = 0;
  int checkpoints = 0;
  int left_out = 0;    // steps without somebody
  int held_back = 0;   // answers that waited for the slowest
  int parted = 0;      // times that a shard's whole standby was lost to it
  int loads = 0;       // generations that began with a checkpoint, or from the beginning
  int covered_at = 0;  // the first event before which every shard had a whole second copy

  Outcome& operator+=(const Outcome& other);
};

// A parameter-server job: its processes, the network between them and the storage below them, run
// through one schedule. Without deviations events come in a fair order: every message arrives,
// every thread that can goes on, every process that died starts again. After the last deviation all
// stopped processes wake, and the job must finish.
class SimulatedJob : public World {
 public:
  SimulatedJob(const Schedule& schedule, bool traced);

  // Throws Violation, with the events before it if traced.
  Outcome run();
  const std::string& trace() const { return trace_; }

  const Setting& setting() const override { return schedule_.setting; }
  SimulatedNetwork& network() override { return network_; }
  SimulatedStorage& storage() override { return storage_; }
  Books& books() override { return books_; }
  int process_at(const Place& place) const override;
  bool is_silent(int process) const override;
  void tell(int process, const char* what, uint64_t number) override;

 private:
  struct Seat {
    Place place;
    int current = -1;  // process
    int attempts = 0;
    bool done = false;
  };
  struct Event {
    enum class Kind { start, act, deliver } kind;
    int subject;  // seat, process or stream
    int detail;   // thread, or side
    auto key() const { return std::tuple(kind, subject, detail); }
  };
  using Key = std::tuple<Event::Kind, int, int>;

  bool finished() const;
  void step(int at);
  std::vector<Event> events() const;
  void happen(const Event& event);
  void start(Seat& seat);
  void bury(int process);
  void sweep();
  void deviate(const Deviation& deviation);
  void kill(int seat, int losses);
  void oust(int seat);
  void quit(int argument);
  void part(int ps, int copy);
  void disturb_stream(const Deviation& deviation);
  void calm_down();
  Seat* seat_of(int process);
  std::string describe(const Event& event) const;
  void check_end() const;
  bool covered() const;

  const Schedule schedule_;
  const bool traced_;
  Books books_;
  SimulatedStorage storage_;
  SimulatedNetwork network_;
  std::vector<Seat> seats_;
  std::vector<std::unique_ptr<Process>> processes_;  // by id; null: has ended
  std::vector<bool> paused_;
  std::set<int> stopped_for_good_;  // processes
  Key cursor_{};
  int skip_ = 0;
  bool lossy_ = false;  // something was lost that makes async repeat a batch
  Outcome outcome_;
  std::string trace_;
};

}  // namespace muster::ps::protocol
