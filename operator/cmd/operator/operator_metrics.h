#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <chrono>
#include <map>
#include <string>

#include "common/threads/mutex.h"
#include "operator/controller/controller.h"
#include "operator/kube/cluster/environment.h"
#include "operator/kube/tfjob/tfjob_reconciler.h"

namespace muster::cmd {

// The metrics that muster-operator serves at /metrics: workqueue_* and
// controller_runtime_reconcile_*, whose names dashboards for Kubernetes controllers know, and
// Muster's own metrics. The transport adds rest_client_requests_total in the same registry.
// docs/reference/metrics.md lists them. Thread-safe.
class OperatorMetrics final : public controller::Monitor, public kube::Watcher {
 public:
  explicit OperatorMetrics(prometheus::Registry& registry);

  void began(const std::string& key, std::chrono::milliseconds waited) override;
  void ended(const std::string& key, Result result) override;
  void restarted(api::Role role, const std::string& reason, int times) override;
  void took_first_step(std::chrono::milliseconds since_creation) override;
  // Counts TFJobs as the training-operator does, so that its users' dashboards continue to work.
  void count_tfjob(kube::TfJobReconciler::Count count, const std::string& name_space);

  // Shows the version of the CustomResourceDefinition; "": it is not known. Called by one thread.
  void set_definition(const std::string& version);
  void set_leading(bool leads) { leading_.Set(leads ? 1 : 0); }
  // Shows how often the Lease has got another holder until this process got it.
  void set_lease_transitions(int times) { transitions_.Add({}).Set(times); }
  // Sets the metrics that show the current state (not counts of events). Call this before the
  // registry is read.
  void update(int waiting_jobs, bool ready);

 private:
  using Clock = std::chrono::steady_clock;
  prometheus::Counter& passes_of(Result result);
  prometheus::Counter& restarts_of(api::Role role, const std::string& reason);

  prometheus::Counter& adds_;
  prometheus::Counter& retries_;
  prometheus::Gauge& depth_;
  prometheus::Gauge& unfinished_;
  prometheus::Gauge& longest_;
  prometheus::Histogram& queue_time_;
  prometheus::Histogram& work_time_;
  prometheus::Family<prometheus::Counter>& passes_;
  prometheus::Counter& errors_;
  prometheus::Histogram& pass_time_;
  prometheus::Gauge& active_;
  prometheus::Family<prometheus::Counter>& restarts_;
  std::map<kube::TfJobReconciler::Count, prometheus::Family<prometheus::Counter>*> tfjobs_;
  prometheus::Histogram& first_step_;
  prometheus::Gauge& leading_;
  prometheus::Family<prometheus::Gauge>& transitions_;  // only a leader's has a value
  prometheus::Gauge& ready_;
  prometheus::Family<prometheus::Gauge>& definition_;
  Mutex mutex_;
  // Start of each pass, by key.
  std::map<std::string, Clock::time_point> under_way_ MUSTER_GUARDED_BY(mutex_);
  uint64_t taken_ MUSTER_GUARDED_BY(mutex_) = 0;  // number of jobs taken from the queue
  prometheus::Gauge* shown_definition_ = nullptr;
};

}  // namespace muster::cmd
