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
  // For so long a host that was lost is not chosen.
  static constexpr std::chrono::seconds kAvoided{60};

  struct Place {
    size_t host = 0;
    int ordinal = 0;  // of those that compute on that host: the GPUs it gets
  };

  // `slots`: how many replicas each host takes.
  explicit Placement(std::vector<int> slots);

  int free_slots() const;

  // Gives the replica a place on the host with the most free slots, the first of several; where
  // none is free, on the first host. `computes`: it gets GPUs. Replicas of which there is a place
  // already stay there.
  void add(const std::string& name, bool computes);

  void lose(size_t host, Clock::time_point now);

  // Moves a replica from a host that was lost to one that was not and has a free slot. Returns
  // whether there was one.
  bool move(const std::string& name, Clock::time_point now);

  bool has(const std::string& name) const { return places_.contains(name); }
  // Precondition: the replica has a place.
  const Place& place(const std::string& name) const { return places_.at(name); }

 private:
  struct Placed : Place {
    bool computes = false;
  };
  int free_of(size_t host) const;
  std::optional<size_t> freest(const std::vector<bool>& allowed) const;
  Placed placed(size_t host, bool computes) const;
  bool is_lost(size_t host, Clock::time_point now) const;

  const std::vector<int> slots_;
  std::vector<std::optional<Clock::time_point>> avoided_until_;
  std::map<std::string, Placed> places_;
};

}  // namespace muster::local
