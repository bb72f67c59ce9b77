#include "operator/cmd/operator/operator_release.h"

#include <optional>
#include <thread>

#include "common/documents/json.h"
#include "common/program/log.h"
#include "common/threads/pause.h"
#include "operator/kube/cluster/release.h"

namespace muster::cmd {

namespace {

using Clock = std::chrono::steady_clock;
using kube::Client;

constexpr std::chrono::milliseconds kGlance(50);

// The time limit of the whole command.
class Allowance {
 public:
  Allowance(const ReleaseOptions& options, const std::stop_token& stop)
      : pause_(options.pause), until_(Clock::now() + options.timeout), stop_(stop) {}

  // Repeats `what` while it throws Unavailable; throws the error when the time is over.
  template <class What>
  auto retry(const What& what) const {
    for (;;) {
      try {
        return what();
      } catch (const Unavailable& error) {
        if (!pause(pause_)) throw;
        log::warning(error.what());
      }
    }
  }
  // Returns false if the time is over.
  bool pause(std::chrono::milliseconds time) const {
    return Clock::now() + time < until_ && pause_for(time, stop_);
  }

 private:
  const std::chrono::milliseconds pause_;
  const Clock::time_point until_;
  const std::stop_token stop_;
};

// Returns the selector of the Deployment's pods; "" if there is no such Deployment.
std::string scale_down(const Client& client, const kube::ObjectName& deployment) {
  kube::WriteOptions options;
  options.subresource = "scale";
  try {
    const Json scale = client
                           .patch(kube::deployments(), deployment, kube::PatchKind::merge,
                                  {{"spec", {{"replicas", 0}}}}, {}, options)
                           .json();
    log::info("scaled down to 0: Deployment " + deployment.name_space + "/" + deployment.name);
    return string_or(member(scale, "status"), "selector", "");
  } catch (const kube::ApiUnavailable& error) {
    if (error.status().not_found()) return "";
    throw;
  }
}

void expect_no_pods(const Client& client, const std::string& name_space,
                    const std::string& selector) {
  kube::ListOptions options;
  options.label_selector = selector;
  const std::vector<Json> pods = client.list(kube::pods(), name_space, options);
  if (pods.empty()) return;
  const std::string first = string_or(member(pods.front(), "metadata"), "name", "");
  throw Unavailable("expected no operator, found " + std::to_string(pods.size()) + " pods of " +
                    selector + ", the first " + name_space + "/" + first);
}

// The operators' lease, held as an operator would hold it.
class HeldLease {
 public:
  HeldLease(kube::Transport& transport, const kube::LeaseSettings& settings)
      : settings_(settings),
        election_(transport, settings, [](bool) {}),
        thread_([this](const std::stop_token& stop) { election_.run(stop); }) {}

  void await(const Allowance& allowance) const {
    while (!election_.leads()) {
      if (!allowance.pause(kGlance)) expect();
    }
  }
  void expect() const {
    if (election_.leads()) return;
    const std::string leader = election_.leader();
    throw Unavailable("expected to get the Lease " + settings_.name_space + "/" + settings_.name +
                      ", which no operator may hold while pods are released; found that " +
                      (leader.empty() ? "nobody could be asked for it" : leader + " holds it"));
  }

 private:
  const kube::LeaseSettings settings_;
  kube::LeaderElection election_;
  std::jthread thread_;
};

// Removes the lease, which nobody needs any more. A lease that stays does no harm, so a failure is
// only reported. If another process holds the lease, it keeps it.
void remove_lease(const Client& client, const kube::LeaseSettings& settings) {
  const kube::ObjectName name{settings.name_space, settings.name};
  try {
    const std::optional<Json> lease = client.get(kube::leases(), name);
    if (!lease) return;
    const kube::LeaseRecord record = kube::to_lease_record(*lease);
    if (!record.holder.empty()) throw Unavailable("it is held by " + record.holder);
    Client::RemoveOptions options;
    options.preconditions.resource_version = record.resource_version;
    client.remove(kube::leases(), name, options);
  } catch (const Unavailable& error) {
    log::warning("the Lease " + name.name_space + "/" + name.name + " stays: " + error.what());
  } catch (const Invalid& error) {
    log::warning("the Lease " + name.name_space + "/" + name.name + " stays: " + error.what());
  }
}

}  // namespace

void release_pods(kube::Transport& calls, kube::Transport& lease, const ReleaseOptions& options,
                  const std::stop_token& stop) {
  const Client client(calls);
  const Allowance allowance(options, stop);
  std::string operators;
  if (!options.deployment.name.empty()) {
    operators = allowance.retry([&] { return scale_down(client, options.deployment); });
  }
  std::optional<HeldLease> held;
  if (options.elects_leader) {
    held.emplace(lease, options.lease).await(allowance);
  } else if (!operators.empty()) {
    allowance.retry([&] { expect_no_pods(client, options.deployment.name_space, operators); });
  }
  const std::vector<std::string> all = {""};
  int released = 0;
  for (const std::string& name_space : options.namespaces.empty() ? all : options.namespaces) {
    for (bool found = true; found;) {
      found = allowance.retry([&] {
        if (held) held->expect();
        const kube::Release pass = kube::release_pods(client, name_space, options.at_a_time);
        released += pass.released;
        if (!pass.trouble.empty()) throw Unavailable(pass.trouble);
        return pass.tracked > 0;
      });
    }
  }
  log::info("released " + std::to_string(released) + " pods");
  if (held && !operators.empty()) {
    held.reset();  // gives the lease up
    remove_lease(client, options.lease);
  }
}

}  // namespace muster::cmd
