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
  using Replica = Placement::Replica;

  // The ports at which members of a collective reach each other, FIRST-LAST: below those that the
  // kernel takes for outgoing connections, and above those that are chosen here for a server.
  static constexpr const char* kPeerPorts = "32001-32700";

  // `usable` is not empty. `self` is this program, which stands here for each replica.
  Hosts(HostsFile file, std::vector<KnownHost> usable, std::filesystem::path self);

  // Gives those replicas a host and addresses that have none, of which `wanted` run at a time.
  // Throws Invalid if there are fewer slots.
  void add(const std::vector<Replica>& replicas, int wanted, Addresses& addresses);

  // Returns how many threads each replica that computes may have so that those of one host share
  // its processors: as many for all, or the bits that they compute would differ.
  int threads_of_each() const;
  // Returns how many replicas compute on one host, and how many GPUs a host has: the most, the
  // least.
  int most_computing() const { return placement_.most_computing(); }
  int least_gpus() const;

  // To be called before and after a replica runs. If it moves, begin() returns a sentence on it.
  // end() returns why it was lost, if it was: with its host, or because that cannot run it.
  std::optional<std::string> begin(const std::string& name, Addresses& addresses);
  std::optional<std::string> end(const std::string& name, const std::filesystem::path& folder);

  bool has(const std::string& name) const { return placement_.has(name); }
  // Returns how many GPUs the replica's host has, and which of those that take GPUs there it is.
  int gpus_at(const std::string& name) const;
  int ordinal_of(const std::string& name) const { return placement_.ordinal_of(name); }

  // Returns the process here that stands for the replica: it runs `there` on the replica's host,
  // with `there`'s environment in place of the same variables of that host. Writes to `folder`, the
  // replica's own. Throws WriteError.
  Launch launch(const std::string& name, const Launch& there,
                const std::filesystem::path& folder) const;

 private:
  const KnownHost& at(const std::string& name) const;
  void settle(const std::string& name, Addresses& addresses) const;

  const HostsFile file_;
  const std::vector<KnownHost> hosts_;
  const std::filesystem::path self_;
  const std::filesystem::path folder_;  // from which relative paths of the file's ssh count
  Placement placement_;
};

}  // namespace muster::local
