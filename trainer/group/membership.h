#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/group/address.h"
#include "trainer/group/identity.h"

namespace muster::group {

enum class Role { ps, chief, worker, evaluator };

// The job's replicas as TF_CONFIG lists them, "host:port" each, by index.
struct Cluster {
  std::vector<std::string> ps;
  std::vector<std::string> chief;  // or master; at most one
  std::vector<std::string> workers;
};

// The limits of an elastic group's workers; such a group continues with the workers that it has.
struct Elastic {
  int least = 1;
  int most = 1;
  bool global_batch = true;  // false: the batch of a step grows with the group
};

// The place of this process in its job: TF_CONFIG and the MUSTER_* environment as values.
struct Membership {
  std::string job = "standalone";
  std::string name_space;  // the job's; empty: `muster run`, or a training without a job
  std::string uid;
  Role role = Role::chief;
  std::string role_name = "chief";  // the name in the job, may be "master"
  int index = 0;
  int attempt = 0;
  int restarts = 0;        // restarts in place of this attempt
  int last_exit_code = 0;  // exit code of the process before this one; 0 for the first process
  Cluster cluster;         // empty for a job of one replica
  std::map<std::string, int> replicas;  // every role of the job, the evaluator too
  int replication = 1;                  // copies of every shard, 1 or 2
  bool trained = false;                 // the job's training had ended before this replica began
  std::optional<Elastic> elastic;
  std::filesystem::path storage;
  std::string adopt;  // namespace/name of the job whose training in `storage` this job continues
  std::filesystem::path training;
  std::filesystem::path checkpoint_request;  // file with requests to rank 0 for checkpoints
  std::string http_address;
  std::string pod_ip;    // this process's IP address, if it is set
  PortRange peer_ports;  // ports on which a member of a collective listens for others
  Identity identity;     // identity of all replicas of the job

  // Members compute. Rank 0 leads: it is the chief, else worker 0.
  int members() const { return static_cast<int>(cluster.chief.size() + cluster.workers.size()); }
  int shards() const { return static_cast<int>(cluster.ps.size()); }
  bool is_member() const { return role == Role::chief || role == Role::worker; }
  int rank() const;  // precondition: is_member()
  bool is_leader() const { return is_member() && rank() == 0; }
  // distributed(): gradients are added up in parameter servers. collective(): without parameter
  // servers.
  bool distributed() const { return !cluster.ps.empty(); }
  bool collective() const { return !distributed() && (members() > 1 || elastic); }
  bool has_evaluator() const;
  std::string rendezvous_address() const;  // rank 0's address
  std::string own_address() const;
  // Returns own_address() by IP if that is known, for peers that cannot or need not ask DNS.
  std::string reachable_address() const;
  std::string reachable_host() const;  // the host of reachable_address(), without brackets
  std::string name() const { return role_name + " " + std::to_string(index); }
};

using Environment = std::map<std::string, std::string>;

// Returns the process's environment.
Environment read_environment();

// Parses the environment. Throws Invalid (kBadConfig) naming the variable and field, what was
// expected and what was found.
Membership parse_membership(const Environment& environment);

// Returns the value of MUSTER_SHARED_MEMORY: false for 0 (everything goes through the network),
// true for 1 or unset. Throws Invalid (kBadConfig).
bool shared_memory_wanted();

// Returns a text that is the same for processes which may map each other's memory; "" if shared
// memory is not wanted.
std::string shared_memory_host();

}  // namespace muster::group
