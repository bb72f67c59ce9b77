#pragma once

#include <string>

#include "tests/unit/trainer/ps/protocol/books.h"
#include "tests/unit/trainer/ps/protocol/simulated_network.h"
#include "tests/unit/trainer/ps/protocol/simulated_storage.h"

namespace muster::ps::protocol {

struct Place {
  enum class Role { ps, chief, worker } role = Role::ps;
  int index = 0;
  bool operator==(const Place&) const = default;
  std::string text() const;
};

// The surroundings of a process.
class World {
 public:
  virtual ~World() = default;
  virtual const Setting& setting() const = 0;
  virtual SimulatedNetwork& network() = 0;
  virtual SimulatedStorage& storage() = 0;
  virtual Books& books() = 0;
  // Returns the process that answers at a place's address now; -1: none.
  virtual int process_at(const Place& place) const = 0;
  // Returns true if the process has stopped and was replaced, so that its silence is noticed.
  virtual bool is_silent(int process) const = 0;
  // Writes to the trace what has happened, with the number that belongs to it.
  virtual void tell(int process, const char* what, uint64_t number) = 0;
};

// A replica. Each of its threads does one thing at a time; between two of them anything may happen
// to the process.
class Process {
 public:
  Process(World& world, int id, Place place, int attempt)
      : world_(world), id_(id), place_(place), attempt_(attempt) {}
  virtual ~Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  virtual int threads() const = 0;
  virtual bool ready(int thread) const = 0;
  virtual void act(int thread) = 0;
  // Takes a message, or End.
  virtual void receive(int stream, Message message) = 0;

  const Place& place() const { return place_; }
  int attempt() const { return attempt_; }
  bool done() const { return done_; }    // has ended well
  bool ended() const { return ended_; }  // has ended, well or not
  std::string name() const { return place_.text() + "." + std::to_string(attempt_); }

 protected:
  void finish(bool well) {
    done_ = well;
    ended_ = true;
  }
  void tell(const char* what, uint64_t number) { world_.tell(id_, what, number); }

  World& world_;
  const int id_;

 private:
  const Place place_;
  const int attempt_;
  bool done_ = false;
  bool ended_ = false;
};

}  // namespace muster::ps::protocol
