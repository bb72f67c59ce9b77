#include "operator/local/hosts/hosts.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
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
      folder_(fs::current_path()),
      placement_(slots_of(hosts_)) {}

void Hosts::add(const std::vector<Replica>& replicas, int wanted, Addresses& addresses) {
  if (wanted > placement_.slots()) {
    throw Invalid("--hosts: expected " + std::to_string(wanted) +
                      " slots for the job's replicas, found " + std::to_string(placement_.slots()) +
                      " on the " + std::to_string(hosts_.size()) + " hosts that can be used",
                  kBadInput);
  }
  for (const Replica& replica : replicas) {
    if (placement_.has(replica.name)) continue;
    placement_.add(replica);
    assign_address(replica.name, addresses);
  }
}

int Hosts::threads_of_each() const {
  int least = hosts_[0].facts.cpus;
  for (const KnownHost& known : hosts_) least = std::min(least, known.facts.cpus);
  return std::max(1, least / std::max(1, placement_.most_computing()));
}

int Hosts::least_gpus() const {
  int least = hosts_[0].facts.gpus;
  for (const KnownHost& known : hosts_) least = std::min(least, known.facts.gpus);
  return least;
}

std::optional<std::string> Hosts::begin(const std::string& name, Addresses& addresses) {
  const std::string from = at(name).host.name;
  const Placement::Begins how = placement_.begin(name, Placement::Clock::now());
  if (how == Placement::Begins::as_before) return std::nullopt;
  assign_address(name, addresses);
  if (how == Placement::Begins::anew) return std::nullopt;
  return name + " moves from " + from + " to " + at(name).host.name;
}

std::optional<std::string> Hosts::end(const std::string& name, const fs::path& folder) {
  std::optional<std::string> why;
  try {
    if (is_there(loss_file(folder))) why = read_file(loss_file(folder));
  } catch (const std::runtime_error& error) {
    why = error.what();
  }
  placement_.end(name, why.has_value(), Placement::Clock::now());
  if (!why) return std::nullopt;
  while (why->ends_with('\n')) why->pop_back();
  return "lost on the host " + at(name).host.name + ": " + *why;
}

const KnownHost& Hosts::at(const std::string& name) const {
  return hosts_[placement_.host_of(name)];
}

void Hosts::assign_address(const std::string& name, Addresses& addresses) const {
  const KnownHost& host = at(name);
  // The replica's own earlier ports are taken too: a lost process may still listen on them.
  std::set<int> taken;
  for (const auto& [server, port] : addresses.ports) taken.insert(port);
  std::vector<int> free;
  std::ranges::copy_if(host.facts.ports, std::back_inserter(free),
                       [&](int port) { return !taken.contains(port); });
  if (free.size() < 2) throw Unavailable("the host " + host.host.name + " has no more free ports");
  addresses.hosts[name] = host.ip;
  addresses.ports[name] = free[0];
  addresses.ports[name + "/http"] = free[1];
}

int Hosts::gpus_at(const std::string& name) const {
  return at(name).facts.gpus;
}

Launch Hosts::launch(const std::string& name, const Launch& there, const fs::path& folder) const {
  LinkOrder order;
  order.command = remote_command(file_, at(name).host, "run");
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
  here.directory = folder_;
  return here;
}

}  // namespace muster::local
