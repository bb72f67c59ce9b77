#include "operator/local/replica_launch.h"

#include <algorithm>

#include "common/documents/json.h"
#include "common/documents/problem.h"
#include "common/error.h"
#include "common/system/process.h"
#include "operator/api/templates.h"
#include "operator/local/processes/surroundings.h"
#include "operator/plan/environment.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;

std::string http_port_name(const std::string& name) {
  return name + "/http";
}

// Returns the path of the container that counts.
std::string container_path(const Json& pod_template, const std::string& role_name) {
  const std::string path = "spec.replicaSpecs." + role_name + ".template.spec.containers";
  const Json& container = api::counting_container(pod_template);
  const Json& all = member(member(pod_template, "spec"), "containers");
  return container.is_null() ? path : child_path(path, static_cast<size_t>(&container - &all[0]));
}

std::string why_not_executable(const std::string& command, const fs::path& directory) {
  if (command.find('/') == std::string::npos) return "which is no executable file on PATH";
  std::error_code error;
  if (!fs::exists(directory / command, error)) return "which is not there";
  return fs::is_regular_file(directory / command, error) ? "which is not executable"
                                                         : "which is no file";
}

void check_replica(const ReplicaLaunch& replica, const std::string& path, const Document& document,
                   bool here) {
  const Launch& launch = replica.launch;
  const auto require = [&](bool holds, const std::string& field, const std::string& expected,
                           const std::string& found) {
    if (holds) return;
    throw Invalid(make_problem(document, path + field, expected, found).text());
  };
  require(!launch.command.empty(), ".command",
          "a command, for `muster run` starts processes of this machine, not images", "none");
  if (!here) return;
  std::error_code error;
  const bool is_folder = fs::is_directory(launch.directory, error);
  require(is_folder, ".workingDir", "a folder of this machine",
          launch.directory.string() + (error ? " (" + error.message() + ")" : ""));
  const std::string& command = launch.command[0];
  require(find_executable(command, path_in(launch.environment), launch.directory).has_value(),
          ".command[0]", "a program of this machine",
          "\"" + command + "\", " + why_not_executable(command, launch.directory));
}

}  // namespace

std::vector<std::string> port_names(const api::TrainingJob& job) {
  std::vector<std::string> names;
  for (const auto& [role, spec] : job.replicas) {
    for (int index = 0; index < api::most_replicas(job, role); ++index) {
      const std::string name = replica_name(job, role, index);
      if (role != api::Role::evaluator) names.push_back(name);
      names.push_back(http_port_name(name));
    }
  }
  return names;
}

namespace {

bool computes(api::Role role) {
  return role == api::Role::chief || role == api::Role::worker;
}

// Returns how many GPUs CUDA_VISIBLE_DEVICES names, in the template or else in the environment.
std::optional<int> named_gpus(const Json& pod_template, std::vector<std::string> environment) {
  for (const auto& [name, value] : container_command(pod_template, {}).variables)
    set_variable(environment, name, value, /*overwrite=*/true);
  constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES=";
  for (const std::string& variable : environment) {
    if (!variable.starts_with(kVisible)) continue;
    return variable == kVisible ? 0 : static_cast<int>(std::ranges::count(variable, ',')) + 1;
  }
  return std::nullopt;
}

int computing_replicas(const api::TrainingJob& job) {
  int computing = 0;
  for (const api::Role role : api::kRoles)
    if (computes(role)) computing += api::most_replicas(job, role);
  return std::max(1, computing);
}

}  // namespace

int threads_of_each(const api::TrainingJob& job, int cpus) {
  int replicas = 0;
  for (const api::Role role : api::kRoles) replicas += api::most_replicas(job, role);
  return replicas <= 1 ? 0 : std::max(1, cpus / computing_replicas(job));
}

int devices_of_each(const api::TrainingJob& job, const Setting& setting) {
  const Hosts* hosts = setting.hosts.get();
  const int gpus = hosts != nullptr ? hosts->least_gpus() : setting.gpus;
  const int replicas = hosts != nullptr ? hosts->most_computing() : computing_replicas(job);
  int least = api::kMostDevices;
  for (const auto& [role, spec] : job.replicas) {
    if (!computes(role) || spec.replicas == 0) continue;
    const std::optional<int> named = named_gpus(spec.pod_template, setting.environment);
    least = std::min(least, named ? std::min(*named, gpus) : gpus / std::max(1, replicas));
  }
  return std::max(1, least);
}

int wanted_replicas(const api::TrainingJob& job) {
  int wanted = 0;
  for (const auto& [role, spec] : job.replicas) wanted += spec.replicas;
  return wanted;
}

std::vector<Hosts::Replica> replicas_to_place(const api::TrainingJob& job) {
  std::vector<Hosts::Replica> replicas;
  for (const auto& [role, spec] : job.replicas) {
    for (int index = 0; index < api::most_replicas(job, role); ++index)
      replicas.push_back({replica_name(job, role, index), computes(role), role != api::Role::ps});
  }
  return replicas;
}

namespace {

// `ordinal`: the replica's number among the computing replicas of the same machine.
std::optional<std::string> gpus_of(const api::TrainingJob& job, api::Role role, int ordinal,
                                   int gpus) {
  const std::string device = string_or(job.training, "device", "auto");
  const bool ps_too = string_or(job.training, "psDevice", "cpu") == "cuda";
  if (gpus < 2 || job.training.is_null() || (device == "cpu" && !ps_too)) return std::nullopt;
  // A ps may share a GPU with a computing replica, and then exchanges data with it on that GPU.
  if (role == api::Role::ps) return ps_too ? std::to_string(ordinal % gpus) : "";
  const Json& devices = member(job.training, "devices");
  const int each = devices.is_number_integer() ? devices.get<int>() : 1;
  std::string list;
  for (int i = 0; i < std::min(each, gpus); ++i)
    list += (i > 0 ? "," : "") + std::to_string((ordinal * each + i) % gpus);
  return list;
}

// Returns what a pod of this template would run besides the container whose end decides.
std::vector<std::string> further_containers(const Json& pod_template) {
  const Json& pod = member(pod_template, "spec");
  const std::string counting = string_or(api::counting_container(pod_template), "name", "");
  std::vector<std::string> found;
  for (const Json& container : member(pod, "initContainers"))
    found.push_back("the init container " + string_or(container, "name", "without a name"));
  for (const Json& container : member(pod, "containers")) {
    const std::string name = string_or(container, "name", "without a name");
    if (name != counting) found.push_back("the container " + name);
  }
  return found;
}

}  // namespace

std::optional<std::string> visible_gpus(const api::TrainingJob& job, api::Role role, int index,
                                        int gpus) {
  if (role == api::Role::ps) return gpus_of(job, role, index, gpus);
  int before = index;
  for (const api::Role other : api::kRoles) {
    if (other == role) break;
    if (other != api::Role::ps) before += api::most_replicas(job, other);
  }
  return gpus_of(job, role, before, gpus);
}

Variables replica_variables(const api::TrainingJob& job, api::Role role, int index, int attempt,
                            const Setting& setting, const Addresses& addresses) {
  const JobDirectory& directory = setting.directory;
  const auto address = [&](api::Role peer, int peer_index) {
    return addresses.of(replica_name(job, peer, peer_index));
  };
  const std::string name = replica_name(job, role, index);
  Variables variables = plan::environment(job, role, index, attempt, address).variables;
  variables.emplace_back("MUSTER_STORAGE", directory.root().string());
  variables.emplace_back("MUSTER_HTTP_ADDRESS", addresses.of(http_port_name(name)));
  // TF_CONFIG has the addresses of the others at the start of this replica; by this variable the
  // others learn the address of this replica.
  if (const auto host = addresses.hosts.find(name); host != addresses.hosts.end())
    variables.emplace_back("MUSTER_POD_IP", host->second);
  if (setting.hosts != nullptr) variables.emplace_back("MUSTER_PEER_PORTS", Hosts::kPeerPorts);
  if (!job.training.is_null()) {
    variables.emplace_back("MUSTER_TRAINING", directory.training(name).string());
    if (plan::leads(job, role, index))
      variables.emplace_back("MUSTER_CHECKPOINT_REQUEST", directory.checkpoint_request().string());
    if (const std::string keys = job.status.keys(); !keys.empty())
      variables.emplace_back("MUSTER_TLS", directory.keys(keys).string());
    const int threads = setting.threads.value_or(threads_of_each(job, setting.cpus));
    if (threads > 0) variables.emplace_back("MUSTER_THREADS", std::to_string(threads));
  }
  return variables;
}

ReplicaLaunch replica_launch(const api::TrainingJob& job, api::Role role, int index, int attempt,
                             const Setting& setting, const Addresses& addresses) {
  const std::string name = replica_name(job, role, index);
  const Variables ours = replica_variables(job, role, index, attempt, setting, addresses);
  ContainerCommand container = container_command(job.replicas.at(role).pod_template, ours);
  ReplicaLaunch result;
  result.grace = container.grace;
  result.runs_trainer = !job.training.is_null() && container.command.empty();
  result.left_out = std::move(container.left_out);
  Launch& launch = result.launch;
  launch.command = std::move(container.command);
  if (result.runs_trainer) launch.command = {setting.trainer.string()};
  if (!launch.command.empty()) {
    launch.command.insert(launch.command.end(), container.arguments.begin(),
                          container.arguments.end());
  }
  launch.environment = setting.environment;
  const Hosts* hosts = setting.hosts.get();
  const auto gpus = hosts != nullptr && hosts->has(name)
                        ? gpus_of(job, role, hosts->ordinal_of(name), hosts->gpus_at(name))
                        : visible_gpus(job, role, index, setting.gpus);
  if (gpus && result.runs_trainer)
    set_variable(launch.environment, "CUDA_VISIBLE_DEVICES", *gpus, /*overwrite=*/false);
  for (const auto& [variable, value] : container.variables) {
    set_variable(launch.environment, variable, value, /*overwrite=*/true);
  }
  launch.directory = setting.working_directory;
  if (!container.working_directory.empty()) launch.directory /= container.working_directory;
  launch.log = setting.directory.log(name);
  launch.pid_file = setting.directory.pid_file(name);
  return result;
}

std::vector<std::string> check_runs_here(const api::TrainingJob& job, const Document& document,
                                         const Setting& setting, bool here) {
  Addresses addresses;
  for (const std::string& name : port_names(job)) addresses.ports[name] = 0;
  std::vector<std::string> notes;
  for (const auto& [role, spec] : job.replicas) {
    if (spec.replicas == 0) continue;
    const std::string role_name = api::role_name(job, role);
    const ReplicaLaunch replica = replica_launch(job, role, 0, 0, setting, addresses);
    check_replica(replica, container_path(spec.pod_template, role_name), document, here);
    for (const std::string& variable : replica.left_out) {
      notes.push_back("the variable " + variable + " of " + role_name +
                      " comes from Kubernetes and is not set here");
    }
    for (const std::string& container : further_containers(spec.pod_template))
      notes.push_back(container + " of " + role_name + " is not run here");
  }
  return notes;
}

}  // namespace muster::local
