#pragma once

#include <string>

#include "tests/unit/trainer/collective/protocol/books.h"
#include "tests/unit/trainer/ps/protocol/simulated_network.h"

namespace muster::collective::protocol {

using ps::protocol::End;
using ps::protocol::Message;
using ps::protocol::SimulatedNetwork;
using Side = SimulatedNetwork::Side;

// What is outside of a process.
class World {
 public:
  virtual ~World() = default;
  virtual const Setting& setting() const = 0;
  virtual SimulatedNetwork& network() = 0;
  virtual SimulatedStorage& storage() = 0;
  virtual Books& books() = 0;
  // Who answers at a rank's address now; -1: nobody.
  virtual int process_at(int rank) const = 0;
  virtual bool is_running(int process) const = 0;
  virtual bool is_stopped(int process) const = 0;
  // True if it has stopped and was replaced: its silence is noticed.
  virtual bool is_silent(int process) const = 0;
  // Whoever can has told this rank 0 where it stands: what is missing will not come soon.
  virtual bool all_attend(int chief) const = 0;
  // A generation runs from here on. Throws Violation where it should begin with something else.
  virtual void opened(const CollectivePlan& plan) = 0;
  // A checkpoint of a generation is.
  virtual void published(uint64_t generation) = 0;
  // For the trace: what has happened, with the number that belongs to it.
  virtual void tell(int process, const char* what, uint64_t number) = 0;
};

// A replica. Its threads each do one thing at a time, between which anything may happen to it.
class Process {
 public:
  Process(World& world, int id, int rank, int attempt)
      : world_(world), id_(id), rank_(rank), attempt_(attempt) {}
  virtual ~Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  virtual int threads() const = 0;
  virtual bool ready(int thread) const = 0;
  virtual void act(int thread) = 0;
  // A message, or End, on a stream that this process has `side` of.
  virtual void receive(int stream, Side side, Message message) = 0;
  // Generation and step of what it holds; 0, 0: nothing.
  virtual std::pair<uint64_t, uint64_t> held() const = 0;
  // Asks it to leave an elastic group.
  virtual void leave() = 0;
  virtual bool attends(int chief) const = 0;

  int rank() const { return rank_; }
  bool done() const { return done_; }    // has ended well
  bool ended() const { return ended_; }  // has ended, well or not
  std::string name() const {
    return (rank_ == 0 ? "chief" : "worker " + std::to_string(rank_ - 1)) + "." +
           std::to_string(attempt_);
  }
  Hello hello() const;

 protected:
  void finish(bool well) {
    done_ = well;
    ended_ = true;
  }
  void tell(const char* what, uint64_t number) { world_.tell(id_, what, number); }

  World& world_;
  const int id_;

 private:
  const int rank_;
  const int attempt_;
  bool done_ = false;
  bool ended_ = false;
};

inline uint64_t incarnation_of(int process) {
  return static_cast<uint64_t>(process) + 1;
}

inline Hello Process::hello() const {
  Hello hello;
  hello.set_role(rank_ == 0 ? "chief" : "worker");
  hello.set_index(static_cast<uint32_t>(rank_ == 0 ? 0 : rank_ - 1));
  hello.set_attempt(static_cast<uint32_t>(attempt_));
  hello.set_incarnation(incarnation_of(id_));
  const bool second = world_.setting().hosts == Setting::Hosts::two && rank_ % 2 == 1;
  hello.set_host(second ? "second" : "first");
  return hello;
}

}  // namespace muster::collective::protocol
