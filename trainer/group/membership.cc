#include "trainer/group/membership.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/environment.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/net/host_port.h"
#include "common/system/file.h"
#include "common/text/whole_number.h"
#include "trainer/group/address.h"
#include "trainer/group/tf_config.h"

namespace muster::group {

int Membership::rank() const {
  return role == Role::chief ? 0 : index + static_cast<int>(cluster.chief.size());
}

bool Membership::has_evaluator() const {
  const auto found = replicas.find("evaluator");
  return found != replicas.end() && found->second > 0;
}

std::string Membership::rendezvous_address() const {
  return cluster.chief.empty() ? cluster.workers.at(0) : cluster.chief[0];
}

std::string Membership::own_address() const {
  if (role == Role::ps) return cluster.ps.at(index);
  return role == Role::chief ? cluster.chief.at(0) : cluster.workers.at(index);
}

std::string Membership::reachable_address() const {
  return pod_ip.empty() ? own_address() : address_at(own_address(), pod_ip);
}

bool shared_memory_wanted() {
  const std::string value = environment_variable("MUSTER_SHARED_MEMORY", "1");
  if (value == "0" || value == "1") return value == "1";
  throw Invalid("MUSTER_SHARED_MEMORY: expected 0 or 1, found \"" + value + "\"", kBadConfig);
}

// Shared memory is opened through /proc, so only processes with the same view of processes can map
// it.
std::string shared_memory_host() {
  if (!shared_memory_wanted()) return "";
  std::error_code error;
  const auto processes = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (error || boot.empty()) return "";
  return boot + " " + processes.string() + " " + std::to_string(geteuid());
}

std::string Membership::reachable_host() const {
  return host_of(reachable_address());
}

Environment read_environment() {
  Environment environment;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

namespace {

std::string value_of(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

int number_of(const Environment& environment, const std::string& name, int fallback) {
  const std::string text = value_of(environment, name);
  if (text.empty()) return fallback;
  const auto number = whole_number<int>(text, 0);
  if (!number)
    throw Invalid(name + ": expected a number of at least 0, found \"" + text + "\"", kBadConfig);
  return *number;
}

// A TF_CONFIG that is too long for a variable is in a file that MUSTER_TF_CONFIG names.
std::string read_tf_config(const Environment& environment) {
  const std::string file = value_of(environment, "MUSTER_TF_CONFIG");
  if (file.empty()) return value_of(environment, "TF_CONFIG");
  try {
    return read_file(file);
  } catch (const Invalid& error) {
    throw Invalid(std::string("MUSTER_TF_CONFIG: ") + error.what(), kBadConfig);
  }
}

PortRange to_port_range(const std::string& text) {
  const auto range = port_range(text);
  if (!range)
    throw Invalid("MUSTER_PEER_PORTS: expected FIRST-LAST, of 1 to 65535, found \"" + text + "\"",
                  kBadConfig);
  return *range;
}

// MUSTER_ROLE and MUSTER_INDEX repeat parts of TF_CONFIG; if both are set they must agree.
void check_agreement(const Environment& environment, const Membership& membership) {
  const std::string role = value_of(environment, "MUSTER_ROLE");
  if (!role.empty() && role != membership.role_name)
    throw Invalid("MUSTER_ROLE: expected \"" + membership.role_name +
                      "\" as TF_CONFIG's task.type says, found \"" + role + "\"",
                  kBadConfig);
  const int index = number_of(environment, "MUSTER_INDEX", membership.index);
  if (index != membership.index)
    throw Invalid("MUSTER_INDEX: expected " + std::to_string(membership.index) +
                      " as TF_CONFIG's task.index says, found " + std::to_string(index),
                  kBadConfig);
}

void check_topology(const Membership& membership) {
  if (membership.distributed() && membership.members() == 0)
    throw Invalid(
        "TF_CONFIG: cluster: expected a chief, master or worker beside the ps, found none",
        kBadConfig);
  if ((membership.distributed() || membership.collective()) && membership.storage.empty())
    throw Invalid("MUSTER_STORAGE: expected the job's folder on shared storage, found nothing",
                  kBadConfig);
}

}  // namespace

Membership parse_membership(const Environment& environment) {
  Membership membership;
  membership.storage = value_of(environment, "MUSTER_STORAGE");
  membership.training = value_of(environment, "MUSTER_TRAINING");
  membership.checkpoint_request = value_of(environment, "MUSTER_CHECKPOINT_REQUEST");
  membership.http_address = value_of(environment, "MUSTER_HTTP_ADDRESS");
  if (!membership.http_address.empty() && !is_address(membership.http_address))
    throw Invalid(
        "MUSTER_HTTP_ADDRESS: expected host:port, found \"" + membership.http_address + "\"",
        kBadConfig);
  membership.pod_ip = value_of(environment, "MUSTER_POD_IP");
  if (!membership.pod_ip.empty() && !is_ip(membership.pod_ip))
    throw Invalid("MUSTER_POD_IP: expected an IP address, found \"" + membership.pod_ip + "\"",
                  kBadConfig);
  if (const std::string ports = value_of(environment, "MUSTER_PEER_PORTS"); !ports.empty())
    membership.peer_ports = to_port_range(ports);
  if (const std::string folder = value_of(environment, "MUSTER_TLS"); !folder.empty())
    membership.identity = Identity::load(folder);
  membership.name_space = value_of(environment, "MUSTER_NAMESPACE");
  membership.uid = value_of(environment, "MUSTER_JOB_UID");
  membership.adopt = value_of(environment, "MUSTER_ADOPT");
  membership.attempt = number_of(environment, "MUSTER_ATTEMPT", 0);
  membership.restarts = number_of(environment, "MUSTER_RESTARTS", 0);
  membership.last_exit_code = number_of(environment, "MUSTER_LAST_EXIT_CODE", 0);
  membership.trained = number_of(environment, "MUSTER_TRAINED", 0) > 0;
  membership.replication = number_of(environment, "MUSTER_REPLICATION", 1);
  if (membership.replication < 1 || membership.replication > 2)
    throw Invalid(
        "MUSTER_REPLICATION: expected 1 or 2, found " + std::to_string(membership.replication),
        kBadConfig);
  if (const std::string job = value_of(environment, "MUSTER_JOB"); !job.empty())
    membership.job = job;
  if (const std::string replicas = value_of(environment, "MUSTER_REPLICAS"); !replicas.empty())
    parse_replicas(replicas, membership);
  if (const std::string elastic = value_of(environment, "MUSTER_ELASTIC"); !elastic.empty())
    parse_elastic(elastic, membership);
  const std::string tf_config = read_tf_config(environment);
  if (tf_config.empty()) {
    membership.role_name = value_of(environment, "MUSTER_ROLE");
    if (membership.role_name.empty()) membership.role_name = "chief";
    membership.role = membership.role_name == "worker" ? Role::worker : Role::chief;
    if (membership.role_name == "evaluator" || membership.role_name == "ps")
      throw Invalid("TF_CONFIG: expected a cluster for a replica of role " + membership.role_name +
                        ", found nothing",
                    kBadConfig);
  } else {
    parse_tf_config(tf_config, membership);
    check_agreement(environment, membership);
  }
  check_topology(membership);
  return membership;
}

}  // namespace muster::group
