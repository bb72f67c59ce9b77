#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tests/unit/trainer/simulation/process.h"
#include "tests/unit/trainer/simulation/schedule.h"
#include "tests/unit/trainer/simulation/simulated_storage.h"

namespace muster::simulation {

// The counts of a run, so that a test can see that the simulator reaches the cases it is there for.
struct Outcome {
  int events = 0;
  int faults = 0;
  int restarts = 0;
  int generations = 0;
  // The number of times that each thing has happened: what World::tell() was told, and what a kind
  // of job adds.
  std::map<std::string_view, int> told;

  int count(std::string_view what) const { return told.contains(what) ? told.at(what) : 0; }
  Outcome& operator+=(const Outcome& other);
};

// A simulated job: its processes, the network between them and the storage below them. Without
// deviations events come in a fair order: every message arrives, every thread that can goes on,
// every process that died starts again. After the last deviation all stopped processes wake, and
// the job must finish.
class World {
 public:
  World(int shards, Deviations deviations, bool traced)
      : deviations_(std::move(deviations)), traced_(traced), storage_(shards) {}
  virtual ~World();

  // Throws Violation, with the events before it if traced.
  Outcome run();
  const std::string& trace() const { return trace_; }

  SimulatedNetwork& network() { return network_; }
  SimulatedStorage& storage() { return storage_; }
  const SimulatedStorage& storage() const { return storage_; }
  // Returns the process that answers at a place's address now; -1: none.
  int process_at(const Place& place) const;
  bool is_running(int process) const { return this->process(process) != nullptr; }
  bool is_stopped(int process) const;
  // Returns true if the process has stopped and was replaced, so that its silence is noticed.
  bool is_silent(int process) const;
  virtual std::string host_of(const Place&) const { return ""; }
  // Called when a generation runs from here on.
  void opened(uint64_t generation);
  // Counts what has happened, and writes it to the trace with the number that belongs to it.
  // `what` must be a literal.
  void tell(int process, const char* what, uint64_t number);

 protected:
  struct Seat {
    Place place;
    int current = -1;  // process
    int attempts = 0;
    bool done = false;
    bool leaving = false;  // an elastic group
  };

  // Returns null if a process finds that the job has ended.
  virtual std::unique_ptr<Process> make(const Seat& seat, int id, int attempt) = 0;
  // Makes a fault that only this kind of job can meet.
  virtual void disturb(const Deviation& deviation) = 0;
  virtual void look(int /*event*/) {}  // before each event
  virtual void check_end() const = 0;

  Process* process(int id) const { return processes_[static_cast<size_t>(id)].get(); }
  bool lossy() const { return lossy_; }  // something that was sent may have been lost
  // `losses` says what becomes of its last messages: 0: all arrive; 1: none; 2, 3: those of every
  // other stream are lost.
  void kill(const Seat& seat, int losses);
  void pause(const Seat& seat);
  void stop_for_good(const Seat& seat);
  // Must be called by the destructor of the derived class: processes may use what that has.
  void end_processes() { processes_.clear(); }

  std::vector<Seat> seats_;
  Outcome outcome_;

 private:
  struct Event {
    enum class Kind { start, act, deliver } kind = Kind::start;
    int subject = 0;  // seat, process or stream
    int detail = 0;   // thread, or side
    auto operator<=>(const Event&) const = default;
  };

  bool finished() const;
  void step(int at);
  std::vector<Event> events() const;
  void happen(const Event& event);
  void start(Seat& seat);
  void bury(int process);
  void sweep();
  Seat* seat_of(int process);
  std::string describe(const Event& event) const;

  void deviate(const Deviation& deviation);
  void wake(int argument);
  void disturb_stream(const Deviation& deviation);
  void calm_down();

  const Deviations deviations_;
  const bool traced_;
  SimulatedStorage storage_;
  SimulatedNetwork network_;
  std::vector<std::unique_ptr<Process>> processes_;  // by id; null: has ended
  std::vector<bool> paused_;
  std::set<int> stopped_for_good_;  // processes
  Event cursor_{Event::Kind::start, 0, 0};
  int skip_ = 0;
  bool lossy_ = false;
  std::string trace_;
};

}  // namespace muster::simulation
