#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::local {

// On which host each replica of a job is. Without I/O: hosts are numbers, from 0.
class Placement {
 public:
  using Clock = std::chrono::steady_clock;
  // For so long a host that was lost is chosen only if there is no other.
  static constexpr std::chrono::seconds kAvoided{60};

  struct Replica {
    std::string name;
    bool computes = false;    // it has a share of the host's processors
    bool takes_gpus = false;  // it has GPUs of its own
  };

  // `slots`: how many replicas each host takes at a time.
  explicit Placement(std::vector<int> slots);

  int slots() const;
  // Returns how many of the replicas that compute have been placed on one host, at most.
  int most_computing() const;

  // Gives the replica a place on the host with the most slots that no other replica has been
  // placed on, the first of several. One that has a place stays there. Replicas without which the
  // others cannot go on come first.
  void add(const Replica& replica);

  enum class Begins { as_before, anew, elsewhere };
  // The replica takes a slot. It moves to a host that has a free one if its own host has none or
  // has been lost; where there is no such host, it stays: `anew`, if an earlier process of it may
  // live on there unseen. It leaves a slot to each replica on a lost host that was added before it.
  Begins begin(const std::string& name, Clock::time_point now);
  // It gives its slot back. `lost`: because its host was lost.
  void end(const std::string& name, bool lost, Clock::time_point now);

  bool has(const std::string& name) const { return places_.contains(name); }
  // Precondition of both: the replica has a place.
  size_t host_of(const std::string& name) const { return places_.at(name).host; }
  // Returns the number, from 0, that no other replica with GPUs has on that host.
  int ordinal_of(const std::string& name) const { return places_.at(name).ordinal; }

 private:
  struct Place {
    size_t number = 0;  // in the order of add()
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
  // Returns how many that were added before `place` have to leave a lost host.
  int waiting_before(const Place& place, Clock::time_point now) const;
  bool is_avoided(size_t host, Clock::time_point now) const;

  const std::vector<int> slots_;
  std::vector<std::optional<Clock::time_point>> avoided_until_;
  std::map<std::string, Place> places_;
};

}  // namespace muster::local
