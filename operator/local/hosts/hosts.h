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

// The hosts of one run of a job: where each replica is, and how it is started there.
class Hosts {
 public:
  using Replica = Placement::Replica;

  // The ports for the members of a collective, FIRST-LAST: below the ports that the kernel takes
  // for outgoing connections, and above the ports that Muster chooses for servers.
  static constexpr const char* kPeerPorts = "32001-32700";

  // `usable` is not empty. `self` is this program; on this machine one process of it represents
  // each replica.
  Hosts(HostsFile file, std::vector<KnownHost> usable, std::filesystem::path self);

  // Gives a host and addresses to each of the replicas that has none. `wanted` replicas run at the
  // same time. Throws Invalid if there are fewer slots.
  void add(const std::vector<Replica>& replicas, int wanted, Addresses& addresses);

  // Returns the number of threads of each computing replica, with which the replicas of a host
  // share its processors. All replicas have the same number, because the bits of results depend on
  // it.
  int threads_of_each() const;
  // Return the largest number of computing replicas on a host, and the smallest number of GPUs of a
  // host.
  int most_computing() const { return placement_.most_computing(); }
  int least_gpus() const;

  // Call begin() before a replica runs, and end() after it has run. begin() returns a sentence if
  // the replica moves to another host. end() returns why the replica was lost, if it was lost: with
  // its host, or because the host cannot run it.
  std::optional<std::string> begin(const std::string& name, Addresses& addresses);
  std::optional<std::string> end(const std::string& name, const std::filesystem::path& folder);

  bool has(const std::string& name) const { return placement_.has(name); }
  // gpus_at() returns the number of GPUs of the replica's host; ordinal_of() returns the replica's
  // number among the replicas with GPUs on that host.
  int gpus_at(const std::string& name) const;
  int ordinal_of(const std::string& name) const { return placement_.ordinal_of(name); }

  // Returns the process on this machine that represents the replica: it runs `there` on the
  // replica's host. Variables in the environment of `there` replace those of the host. Writes to
  // `folder`, the replica's folder. Throws WriteError.
  Launch launch(const std::string& name, const Launch& there,
                const std::filesystem::path& folder) const;

 private:
  const KnownHost& at(const std::string& name) const;
  void assign_address(const std::string& name, Addresses& addresses) const;

  const HostsFile file_;
  const std::vector<KnownHost> hosts_;
  const std::filesystem::path self_;
  const std::filesystem::path folder_;  // the folder that relative paths in the file's ssh refer to
  Placement placement_;
};

}  // namespace muster::local
