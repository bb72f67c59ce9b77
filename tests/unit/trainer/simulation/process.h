#pragma once

#include <string>

#include "tests/unit/trainer/simulation/simulated_network.h"

namespace muster::simulation {

class World;

struct Place {
  enum class Role { ps, chief, worker } role = Role::ps;
  int index = 0;

  static Place of_rank(int rank);
  int rank() const { return role == Role::chief ? 0 : index + 1; }  // of a member
  bool operator==(const Place&) const = default;
  std::string text() const;
};
inline constexpr Place kChief{Place::Role::chief, 0};

// A replica. Each of its threads does one thing at a time; between two of them anything may happen
// to the process.
class Process {
 public:
  Process(World& world, int id, Place place, int attempt)
      : id_(id), world_(world), place_(place), attempt_(attempt) {}
  virtual ~Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  virtual int threads() const = 0;
  virtual bool ready(int thread) const = 0;
  virtual void act(int thread) = 0;
  // Takes a message, or End, on a stream that this process has `side` of.
  virtual void receive(int stream, Side side, Message message) = 0;
  // Asks a member to leave an elastic group.
  virtual void leave() {}

  int id() const { return id_; }
  uint64_t incarnation() const { return static_cast<uint64_t>(id_) + 1; }
  const Place& place() const { return place_; }
  bool done() const { return done_; }    // has ended well
  bool ended() const { return ended_; }  // has ended, well or not
  std::string name() const { return place_.text() + "." + std::to_string(attempt_); }
  Hello hello() const;

 protected:
  void finish(bool well) {
    done_ = well;
    ended_ = true;
  }
  void tell(const char* what, uint64_t number) const;

  const int id_;

 private:
  World& world_;
  const Place place_;
  const int attempt_;
  bool done_ = false;
  bool ended_ = false;
};

}  // namespace muster::simulation
