#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::group {

enum class Role { ps, chief, worker, evaluator };

// The job's replicas as TF_CONFIG lists them, "host:port" each, by index.
struct Cluster {
  std::vector<std::string> ps;
  std::vector<std::string> chief;  // or master; at most one
  std::vector<std::string> workers;
};

// How many workers a group may have that goes on with those it has.
struct Elastic {
  int least = 1;
  int most = 1;
  bool global_batch = true;  // else a step's batch is as large as the group
};

// Who this process is and who else there is: TF_CONFIG and the MUSTER_* environment as values.
struct Membership {
  std::string job = "standalone";
  std::string name_space;  // of the job; empty: `muster run`, or a training by itself
  std::string uid;
  Role role = Role::chief;
  std::string role_name = "chief";  // as the job spells it: "master" too
  int index = 0;
  int attempt = 0;
  int restarts = 0;                     // of this attempt, in place
  int last_exit_code = 0;               // of the process before this one; 0 for the first
  Cluster cluster;                      // empty for a job of one replica
  std::map<std::string, int> replicas;  // every role of the job, the evaluator too
  int replication = 1;                  // copies of every shard, 1 or 2
  std::optional<Elastic> elastic;
  std::filesystem::path storage;
  std::string adopt;  // the job, by namespace/name, with whose training in `storage` this goes on
  std::filesystem::path training;
  std::string http_address;
  std::string pod_ip;  // this process's own, where it is told

  // Members compute; rank 0 leads: the chief, else worker 0.
  int members() const { return static_cast<int>(cluster.chief.size() + cluster.workers.size()); }
  int shards() const { return static_cast<int>(cluster.ps.size()); }
  bool is_member() const { return role == Role::chief || role == Role::worker; }
  int rank() const;  // precondition: is_member()
  bool is_leader() const { return is_member() && rank() == 0; }
  // True where gradients meet in parameter servers; where they meet without any.
  bool distributed() const { return !cluster.ps.empty(); }
  bool collective() const { return !distributed() && (members() > 1 || elastic); }
  bool has_evaluator() const;
  std::string rendezvous_address() const;  // of rank 0
  std::string own_address() const;
  // The same by IP where that is known: for those who cannot or need not ask DNS.
  std::string reachable_address() const;
  std::string reachable_host() const;  // of that, without brackets
  std::string name() const { return role_name + " " + std::to_string(index); }
};

using Environment = std::map<std::string, std::string>;

// The process's environment.
Environment read_environment();

// Throws Invalid (kBadConfig) naming the variable and field: what was expected, what was found.
Membership parse_membership(const Environment& environment);

// MUSTER_SHARED_MEMORY: 0 leaves everything to the network, 1 or unset does not. Throws Invalid
// (kBadConfig).
bool shared_memory_wanted();

// Processes with the same answer may map each other's memory; "" where that is not wanted.
std::string shared_memory_host();

// The part of it that TF_CONFIG decides: role, index, cluster.
void parse_tf_config(std::string_view text, Membership& membership);

// The part that MUSTER_REPLICAS decides: how many replicas of each role.
void parse_replicas(std::string_view text, Membership& membership);

// The part that MUSTER_ELASTIC decides.
void parse_elastic(std::string_view text, Membership& membership);

}  // namespace muster::group
