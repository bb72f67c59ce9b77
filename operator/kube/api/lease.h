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

// Leader election by a coordination.k8s.io Lease, as in other Kubernetes controllers.

// Returns the time since the machine's boot, including sleep. Nobody can set this clock.
using BootTime = std::chrono::duration<int64_t, std::nano>;
BootTime boot_time();

struct LeaseRecord {
  std::string holder;  // empty: the lease was given up
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
  std::string identity;  // the unique name of this process
  // How long others wait after the last renewal that they saw.
  std::chrono::milliseconds duration{15'000};
  // A process that could not renew for this time stops leading.
  std::chrono::milliseconds renew_within{10'000};
  std::chrono::milliseconds every{2'000};  // time between tries
};

// The record as it was last read, and when this process first saw it in this state. Expiry is
// counted from `since` by this machine's clock. The times in the record come from another clock:
// no decision follows from them.
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

// Takes and keeps the lease. Use a transport that other calls do not keep busy. leads() becomes
// false by the clock alone, before another process can take the lease; call leads() before each
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
  // Returns the record, as its last leader left it, that this process took over when it began to
  // lead; nothing: it created the lease, or has not led.
  std::optional<LeaseRecord> taken() const;

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
  SeenLease seen_;      // used by run()'s thread only, like fresh_ and told_
  bool fresh_ = false;  // seen_ is the result of our own last write
  bool told_ = false;
  std::atomic<BootTime::rep> leads_until_{0};
  mutable Mutex mutex_;
  std::string leader_ MUSTER_GUARDED_BY(mutex_);
  std::optional<LeaseRecord> taken_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kube
