#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/api/client.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/http/leader_transport.h"
#include "operator/plan/usage.h"

namespace muster::kube {

// The ConfigMap in which the leader keeps what jobs have used, by month and namespace. What is in
// it stays: a new leader reads it, adds what was used while nobody led, and then what it counts
// itself. Each write has a name of its own, so that a write whose answer was lost is found again
// and is not added twice.
class UsageRecord {
 public:
  static constexpr std::chrono::minutes kEvery{5};

  struct Counting {
    api::Time begin;                               // since when this process counts
    std::function<plan::UsageByNamespace()> used;  // what jobs have used from then until now
    std::function<api::Time()> now;
    std::optional<api::Time> looked_until = {};  // until when the leader before has looked at jobs
  };
  // `transport` and `jobs`, which has all jobs, must outlive this object. Only while `leads` says
  // so, something is written.
  UsageRecord(Transport& transport, std::function<bool()> leads, ObjectName name,
              const Store<WholeObject>& jobs, Counting counting)
      : transport_(transport, std::move(leads)),
        client_(transport_),
        name_(std::move(name)),
        jobs_(jobs),
        counting_(std::move(counting)) {}

  // Adds what is new, and writes it. Throws Invalid for a ConfigMap that it cannot read, which
  // stays as it is, and Unavailable; the next call then adds what this one would have added.
  void write();
  // Writes every few minutes until `stop`. Failures are only logged.
  void run(const std::stop_token& stop);
  // Does the same as write(), and only logs a failure.
  void try_to_write();

 private:
  struct Attempt {
    std::string name;
    plan::UsageByNamespace used;  // all that is in the ConfigMap after it
  };
  bool try_once();
  plan::UsageByNamespace news(const plan::UsageTotals& totals, const plan::UsageByNamespace& used);
  void settle(const Attempt& attempt);

  LeaderTransport transport_;
  const Client client_;
  const ObjectName name_;
  const Store<WholeObject>& jobs_;
  const Counting counting_;
  bool has_joined_ = false;          // what was used before `begin` is in the ConfigMap
  plan::UsageByNamespace recorded_;  // what of `used` is in the ConfigMap
  std::vector<Attempt> attempts_;    // those of which it is not known whether they were written
};

}  // namespace muster::kube
