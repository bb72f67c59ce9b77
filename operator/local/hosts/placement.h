#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::local {

// Decides on which host each replica of a job runs. Does no I/O: hosts are numbers, from 0.
class Placement {
 public:
  using Clock = std::chrono::steady_clock;
  // For this time a host that was lost is chosen only if there is no other host.
  static constexpr std::chrono::seconds kAvoided{60};

  struct Replica {
    std::string name;
    bool computes = false;    // it has a share of the host's processors
    bool takes_gpus = false;  // it has GPUs of its own
  };

  // `slots`: the number of replicas that each host can run at a time.
  explicit Placement(std::vector<int> slots);

  int slots() const;
  // Returns the largest number of computing replicas that are placed on one host.
  int most_computing() const;

  // Places the replica on the host with the most unused slots; if several hosts have the same
  // number, on the first of them. A replica that has a place keeps it. Add first the replicas that
  // the others need to continue.
  void add(const Replica& replica);

  enum class Begins { as_before, anew, elsewhere };
  // The replica begins to run and takes a slot. If its host has no free slot or has been lost, the
  // replica moves to a host with a free slot. If there is no such host, it stays; the result is
  // then `anew` if an earlier process of the replica may still live there unseen. When it moves, it
  // leaves one free slot for each replica on a lost host that was added before it.
  Begins begin(const std::string& name, Clock::time_point now);
  // The replica gives its slot back. `lost`: its host was lost.
  void end(const std::string& name, bool lost, Clock::time_point now);

  bool has(const std::string& name) const { return places_.contains(name); }
  // Precondition of both: the replica has a place.
  size_t host_of(const std::string& name) const { return places_.at(name).host; }
  // Returns the replica's number, from 0, among the replicas with GPUs on its host.
  int ordinal_of(const std::string& name) const { return places_.at(name).ordinal; }

 private:
  struct Place {
    size_t number = 0;  // number in the order of add()
    size_t host = 0;
    int ordinal = 0;
    bool computes = false;
    bool takes_gpus = false;
    bool runs = false;
    bool was_lost = false;
  };
  int running_on(size_t host) const;
  void put(Place& place, size_t host);
  // Returns the host with the most free slots, if there are more than `reserved` on all hosts.
  std::optional<size_t> free_host(size_t but, int reserved, Clock::time_point now) const;
  // Returns the number of replicas added before `place` that have to leave a lost host.
  int waiting_before(const Place& place, Clock::time_point now) const;
  bool is_avoided(size_t host, Clock::time_point now) const;

  const std::vector<int> slots_;
  std::vector<std::optional<Clock::time_point>> avoided_until_;
  std::map<std::string, Place> places_;
};

}  // namespace muster::local
