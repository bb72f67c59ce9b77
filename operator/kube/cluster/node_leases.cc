#include "operator/kube/cluster/node_leases.h"

#include <algorithm>

#include "common/documents/json.h"
#include "common/program/log.h"

namespace muster::kube {

namespace {

constexpr const char* kNamespace = "kube-node-lease";

std::chrono::milliseconds until(BootTime time, BootTime now) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::max(time - now, BootTime::zero()));
}

}  // namespace

std::optional<std::string> NodeLeases::ask(const std::string& node) const {
  try {
    const auto lease = client_.get(leases(), {kNamespace, node});
    if (lease) return string_or(member(*lease, "spec"), "renewTime", "");
  } catch (const Unavailable& error) {
    log::debug("lease of node " + node + ": " + error.what());
  } catch (const Invalid& error) {
    log::debug("lease of node " + node + ": " + error.what());
  }
  return std::nullopt;
}

// The Lease is read again as soon as kSilence may have passed.
BootTime NodeLeases::due(const Seen& seen) {
  const BootTime next = seen.asked + kEvery, end = seen.since + kSilence;
  return end > seen.asked ? std::min(next, end) : next;
}

bool NodeLeases::is_silent(const std::string& node, std::chrono::milliseconds& again) {
  // After this time without an answer, the state is not known.
  constexpr BootTime kGap = 2 * kEvery;
  const BootTime now = clock_();
  {
    const MutexLock lock(mutex_);
    std::erase_if(nodes_, [&](const auto& entry) { return now - entry.second.asked > kGap; });
    const auto known = nodes_.find(node);
    if (known != nodes_.end() && now < due(known->second)) {
      const Seen& seen = known->second;
      again = until(due(seen), now);
      return seen.asked - seen.since >= kSilence;
    }
  }
  const std::optional<std::string> renewed = ask(node);
  const MutexLock lock(mutex_);
  const auto [entry, is_new] = nodes_.try_emplace(node, Seen{renewed, now, now});
  Seen& seen = entry->second;
  if (!renewed || seen.renewed != renewed) seen = {renewed, now, now};
  seen.asked = std::max(seen.asked, now);
  again = until(due(seen), now);
  return seen.asked - seen.since >= kSilence;
}

}  // namespace muster::kube
