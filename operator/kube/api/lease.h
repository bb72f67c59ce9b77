#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "common/threads/mutex.h"
#include "operator/kube/api/client.h"
#include "operator/kube/api/objects.h"

namespace muster::kube {

// Leader election by a coordination.k8s.io Lease, in the way of every Kubernetes controller.

// The time since the machine's boot, including its sleeps; nobody can set it.
using BootTime = std::chrono::duration<int64_t, std::nano>;
BootTime boot_time();

struct LeaseRecord {
  std::string holder;  // empty: given up
  std::chrono::seconds duration{15};
  Time acquired{};
  Time renewed{};
  int transitions = 0;
  std::string resource_version;
  bool operator==(const LeaseRecord&) const = default;
};

struct LeaseSettings {
  std::string name_space;
  std::string name = "muster-operator";
  std::string identity;  // of this process; unique
  std::chrono::milliseconds duration{
      15'000};  // others wait so long after the last renewal they saw
  std::chrono::milliseconds renew_within{10'000};  // who could not renew for so long is no leader
  std::chrono::milliseconds every{2'000};          // between tries
};

// The record as it was last read, and when this process first saw it so. Expiry is counted from
// that time by this machine's clock: the times in the record come from another clock and are never
// compared.
struct SeenLease {
  std::optional<LeaseRecord> record;  // nothing: no such object
  BootTime since{};
};

enum class LeaseAction { create, take, renew, wait };
// Decides what to do about a lease. Pure.
LeaseAction decide(const SeenLease& seen, const std::string& identity, BootTime now);
// Returns the record that `action` (create, take, renew) writes.
LeaseRecord next_record(const SeenLease& seen, LeaseAction action, const LeaseSettings& settings,
                        Time now);

Json to_json(const LeaseRecord& record, const LeaseSettings& settings);
LeaseRecord to_lease_record(const Json& object);

// Takes and keeps the lease, over a transport that other calls should not keep busy. leads() turns
// false by itself, by the clock, before another process can take the lease: ask it before each
// write.
class LeaderElection {
 public:
  // Called on run()'s thread: with `true` when the lease was taken, with `false` when it was lost.
  using OnChange = std::function<void(bool leads)>;
  using Clock = std::function<BootTime()>;
  // Waits, or returns false at once when asked to stop.
  using Wait = std::function<bool(std::chrono::milliseconds, const std::stop_token&)>;

  LeaderElection(Transport& transport, LeaseSettings settings, OnChange on_change);
  LeaderElection(Transport& transport, LeaseSettings settings, OnChange on_change, Clock clock,
                 Wait wait);

  // Runs until `stop`; then gives up the lease, so that the next leader need not wait.
  void run(const std::stop_token& stop);

  bool leads() const { return clock_() < BootTime(leads_until_); }
  // Returns the leader as far as it is known; empty: none.
  std::string leader() const;

 private:
  void step();
  void read();
  void write(LeaseAction action);
  void see(std::optional<LeaseRecord> record);
  void tell();
  void give_up();

  const Client client_;
  const LeaseSettings settings_;
  const OnChange on_change_;
  const Clock clock_;
  const Wait wait_;
  SeenLease seen_;      // run()'s thread only, like the two after it
  bool fresh_ = false;  // seen_ is what our own last write has made
  bool told_ = false;
  std::atomic<BootTime::rep> leads_until_{0};
  mutable Mutex mutex_;
  std::string leader_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kube
