#include "operator/local/hosts/hosts.h"

#include <algorithm>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "operator/local/hosts/link.h"
#include "operator/local/processes/surroundings.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;

std::vector<int> slots_of(const std::vector<KnownHost>& hosts) {
  std::vector<int> slots;
  for (const KnownHost& known : hosts) slots.push_back(known.host.slots);
  return slots;
}

fs::path loss_file(const fs::path& folder) {
  return folder / "host-lost";
}

}  // namespace

Hosts::Hosts(HostsFile file, std::vector<KnownHost> usable, fs::path self)
    : file_(std::move(file)),
      hosts_(std::move(usable)),
      self_(std::move(self)),
      placement_(slots_of(hosts_)),
      used_ports_(hosts_.size()) {}

int Hosts::threads_of_each(int computing) const {
  const int hosts = static_cast<int>(hosts_.size());
  const int on_one = std::max(1, (computing + hosts - 1) / hosts);
  int least = hosts_[0].facts.cpus;
  for (const KnownHost& known : hosts_) least = std::min(least, known.facts.cpus);
  return std::max(1, least / on_one);
}

void Hosts::add(const std::vector<Replica>& replicas, Addresses& addresses) {
  const auto missing = std::ranges::count_if(
      replicas, [&](const Replica& replica) { return !placement_.has(replica.name); });
  if (const int free = placement_.free_slots(); missing > free) {
    throw Invalid("--hosts: expected " + std::to_string(missing) +
                      " free slots for the job's replicas, found " + std::to_string(free) + " on " +
                      std::to_string(hosts_.size()) + " hosts that can be used",
                  kBadInput);
  }
  for (const Replica& replica : replicas) {
    if (placement_.has(replica.name)) continue;
    placement_.add(replica.name, replica.computes);
    settle(replica.name, addresses);
  }
}

std::optional<std::string> Hosts::move_from_lost(const std::string& name, Addresses& addresses) {
  const std::string from = host_of(name);
  if (!placement_.move(name, Placement::Clock::now())) return std::nullopt;
  settle(name, addresses);
  return name + " moves from " + from + ", which was lost, to " + host_of(name);
}

void Hosts::settle(const std::string& name, Addresses& addresses) {
  const size_t host = placement_.place(name).host;
  addresses.hosts[name] = hosts_[host].ip;
  addresses.ports[name] = choose_port(host);
  addresses.ports[name + "/http"] = choose_port(host);
}

int Hosts::choose_port(size_t host) {
  const std::vector<int>& ports = hosts_[host].facts.ports;
  if (ports.empty()) throw Unavailable("the host " + hosts_[host].host.name + " has no free port");
  return ports[used_ports_[host]++ % ports.size()];
}

const std::string& Hosts::host_of(const std::string& name) const {
  return hosts_[placement_.place(name).host].host.name;
}

int Hosts::gpus_at(const std::string& name) const {
  return hosts_[placement_.place(name).host].facts.gpus;
}

int Hosts::ordinal_of(const std::string& name) const {
  return placement_.place(name).ordinal;
}

Launch Hosts::launch(const std::string& name, const Launch& there, const fs::path& folder) const {
  LinkOrder order;
  order.command = remote_command(file_, hosts_[placement_.place(name).host].host, "run");
  order.request.command = there.command;
  for (const std::string& variable : there.environment) {
    const size_t equals = variable.find('=');
    order.request.environment[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  order.request.directory = there.directory.string();
  order.loss = loss_file(folder);
  std::error_code none;
  fs::remove(order.loss, none);
  const fs::path file = folder / "link.json";
  write_link_order(file, order);
  Launch here = there;
  here.command = {self_.string(), "host", "link", file.string()};
  here.environment = inherited_environment();
  here.directory = fs::current_path();
  return here;
}

std::optional<std::string> Hosts::loss(const std::string& name, const fs::path& folder) {
  if (!is_there(loss_file(folder))) return std::nullopt;
  std::string why = read_file(loss_file(folder));
  while (why.ends_with('\n')) why.pop_back();
  placement_.lose(placement_.place(name).host, Placement::Clock::now());
  return "lost on the host " + host_of(name) + ": " + why;
}

}  // namespace muster::local
