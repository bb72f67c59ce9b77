#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/trainer/collective/protocol/process.h"
#include "tests/unit/trainer/collective/protocol/schedule.h"

namespace muster::collective::protocol {

// What a run came to, so that a test can see that the simulator reaches what it is there for.
struct Outcome {
  int events = 0;
  int faults = 0;
  int restarts = 0;
  int generations = 0;
  int checkpoints = 0;
  int kept = 0;      // generations that went on with what a member held
  int restored = 0;  // with a checkpoint
  int begun = 0;     // from the beginning
  int shared = 0;    // by memory
  int resized = 0;   // of another number of members than the one before

  Outcome& operator+=(const Outcome& other);
};

// A collective job: its processes, the network between them and the storage below them, run through
// one schedule. What goes by itself goes in a fair order: every message arrives, every thread that
// can goes on, every process that died starts again. When the last deviation has been made, whoever
// was stopped wakes, and the job must finish.
class SimulatedJob : public World {
 public:
  SimulatedJob(const Schedule& schedule, bool traced);
  ~SimulatedJob() override;

  // Throws Violation, with what led to it if traced.
  Outcome run();
  const std::string& trace() const { return trace_; }

  const Setting& setting() const override { return schedule_.setting; }
  SimulatedNetwork& network() override { return network_; }
  SimulatedStorage& storage() override { return storage_; }
  Books& books() override { return books_; }
  int process_at(int rank) const override;
  bool is_running(int process) const override;
  bool is_stopped(int process) const override;
  bool is_silent(int process) const override;
  bool all_attend(int chief) const override;
  void opened(const CollectivePlan& plan) override;
  void published(uint64_t generation) override;
  void tell(int process, const char* what, uint64_t number) override;

 private:
  struct Seat {
    int rank = 0;
    int current = -1;  // process
    int attempts = 0;
    bool done = false;
    bool leaving = false;
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
  Process* process(int id) const { return processes_[static_cast<size_t>(id)].get(); }
  Seat* seat_of(int process);
  std::string describe(const Event& event) const;
  void check_end() const;

  void deviate(const Deviation& deviation);
  void kill(int seat, int losses);
  void oust(int seat);
  void pause(int seat);
  void wake(int argument);
  void grow();
  void shrink();
  void quit(int argument);
  int staying() const;  // seats of an elastic group
  void disturb_stream(const Deviation& deviation);
  void calm_down();

  const Schedule schedule_;
  const bool traced_;
  Books books_;
  SimulatedStorage storage_;
  SimulatedNetwork network_;
  std::vector<Seat> seats_;
  std::vector<std::unique_ptr<Process>> processes_;  // by id; null: has ended
  std::vector<bool> paused_;
  Key cursor_{};
  int skip_ = 0;
  int members_ = 0;      // of the last generation
  uint64_t newest_ = 0;  // generation that was opened
  // That a checkpoint is of; 0: none, or the storage may have lost it.
  uint64_t published_ = 0;
  Outcome outcome_;
  std::string trace_;
};

}  // namespace muster::collective::protocol
