#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "operator/local/hosts/placement.h"
#include "operator/local/hosts/survey.h"
#include "operator/local/processes/ports.h"
#include "operator/local/processes/process.h"

namespace muster::local {

// The hosts of one run of a job: which replica is where, and how it is started there.
class Hosts {
 public:
  // `usable` is not empty. `self` is this program, which stands here for each replica.
  Hosts(HostsFile file, std::vector<KnownHost> usable, std::filesystem::path self);

  // Returns how many threads each of `computing` replicas may have so that those of one host share
  // its processors: as many for all, or the bits that they compute would differ.
  int threads_of_each(int computing) const;

  struct Replica {
    std::string name;
    bool computes = false;
  };
  // Gives those replicas hosts and ports that have none. Throws Invalid if there are too few slots.
  void add(const std::vector<Replica>& replicas, Addresses& addresses);

  // If the replica's host was lost and another one has a free slot, moves it there and returns a
  // sentence on it.
  std::optional<std::string> move_from_lost(const std::string& name, Addresses& addresses);

  bool has(const std::string& name) const { return placement_.has(name); }
  const std::string& host_of(const std::string& name) const;
  // Returns how many GPUs the replica's host has, and which of those that compute there it is.
  int gpus_at(const std::string& name) const;
  int ordinal_of(const std::string& name) const;

  // Returns the process here that stands for the replica: it runs `there` on the replica's host,
  // with `there`'s environment in place of the same variables of that host. Writes to `folder`, the
  // replica's own.
  Launch launch(const std::string& name, const Launch& there,
                const std::filesystem::path& folder) const;

  // After the replica has ended: if that was for the loss of its host, or because it could not be
  // started there, returns why, and avoids that host for a while.
  std::optional<std::string> loss(const std::string& name, const std::filesystem::path& folder);

 private:
  void settle(const std::string& name, Addresses& addresses);
  int choose_port(size_t host);

  const HostsFile file_;
  const std::vector<KnownHost> hosts_;
  const std::filesystem::path self_;
  Placement placement_;
  std::vector<size_t> used_ports_;  // of each host's, how many are given away
};

}  // namespace muster::local
