#include "operator/cmd/operator/operator_metrics.h"

#include <algorithm>

#include "common/program/process_metrics.h"

namespace muster::cmd {

namespace {

using prometheus::Histogram;
using prometheus::Labels;
using Seconds = std::chrono::duration<double>;

const Labels kQueue = {{"name", "trainingjob"}};
const Labels kController = {{"controller", "trainingjob"}};

const Histogram::BucketBoundaries kShort = {1e-4, 1e-3, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60};
const Histogram::BucketBoundaries kLong = {1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600};

// Why replicas are started again (plan/failure.h), except for a user's own reasons.
constexpr const char* kRestartReasons[] = {"ReplicaFailed", "JobRestart", "FailureRule",
                                           "Evicted",       "Preempted",  "NodeLost"};

// prometheus-cpp's builders differ only in their type.
template <class Builder>
auto& family(Builder builder, prometheus::Registry& registry, const char* name, const char* help) {
  return builder.Name(name).Help(help).Register(registry);
}
prometheus::Family<prometheus::Counter>& counters(prometheus::Registry& registry, const char* name,
                                                  const char* help) {
  return family(prometheus::BuildCounter(), registry, name, help);
}
prometheus::Family<prometheus::Gauge>& gauges(prometheus::Registry& registry, const char* name,
                                              const char* help) {
  return family(prometheus::BuildGauge(), registry, name, help);
}
Histogram& histogram(prometheus::Registry& registry, const char* name, const char* help,
                     const Labels& labels, const Histogram::BucketBoundaries& buckets) {
  return family(prometheus::BuildHistogram(), registry, name, help).Add(labels, buckets);
}

const char* text(controller::Monitor::Result result) {
  switch (result) {
    case controller::Monitor::Result::done:
      return "success";
    case controller::Monitor::Result::later:
      return "requeue_after";
    case controller::Monitor::Result::error:
      break;
  }
  return "error";
}

}  // namespace

OperatorMetrics::OperatorMetrics(prometheus::Registry& registry)
    : adds_(counters(registry, "workqueue_adds_total", "Jobs put into the queue").Add(kQueue)),
      retries_(counters(registry, "workqueue_retries_total", "Passes tried again").Add(kQueue)),
      depth_(gauges(registry, "workqueue_depth", "Jobs that wait to be looked at").Add(kQueue)),
      unfinished_(
          gauges(registry, "workqueue_unfinished_work_seconds", "Time of all passes under way")
              .Add(kQueue)),
      longest_(gauges(registry, "workqueue_longest_running_processor_seconds",
                      "Time of the longest pass under way")
                   .Add(kQueue)),
      queue_time_(histogram(registry, "workqueue_queue_duration_seconds",
                            "Time from being due to being looked at", kQueue, kShort)),
      work_time_(
          histogram(registry, "workqueue_work_duration_seconds", "Time of a pass", kQueue, kShort)),
      passes_(counters(registry, "controller_runtime_reconcile_total", "Passes by result")),
      errors_(counters(registry, "controller_runtime_reconcile_errors_total",
                       "Passes that did not succeed")
                  .Add(kController)),
      pass_time_(histogram(registry, "controller_runtime_reconcile_time_seconds", "Time of a pass",
                           kController, kShort)),
      active_(gauges(registry, "controller_runtime_active_workers", "Passes under way")
                  .Add(kController)),
      restarts_(counters(registry, "muster_restarts_total",
                         "Restarts of replicas that count against backoffLimit")),
      first_step_(histogram(registry, "muster_job_first_step_seconds",
                            "Time from a job's creation to its first step, as progress shows it",
                            {}, kLong)),
      leading_(gauges(registry, "muster_operator_leads", "1 if this process acts").Add({})),
      transitions_(gauges(registry, "muster_operator_lease_transitions",
                          "How often the Lease has got another holder")),
      ready_(gauges(registry, "muster_operator_ready",
                    "1 once this process has seen all jobs, pods and services")
                 .Add({})),
      definition_(gauges(registry, "muster_crd_info",
                         "1, with the version of the CustomResourceDefinition of TrainingJob")) {
  using Count = kube::TfJobReconciler::Count;
  for (const auto& [count, word] : std::map<Count, std::string>{{Count::created, "created"},
                                                                {Count::deleted, "deleted"},
                                                                {Count::successful, "successful"},
                                                                {Count::failed, "failed"},
                                                                {Count::restarted, "restarted"}}) {
    const std::string name = "training_operator_jobs_" + word + "_total";
    tfjobs_[count] = &counters(registry, name.c_str(), ("TFJobs " + word).c_str());
  }
  // An alert on an increase does not see a series whose first value is more than 0.
  for (const Result result : {Result::done, Result::later, Result::error}) passes_of(result);
  for (const api::Role role : api::kRoles)
    for (const char* reason : kRestartReasons) restarts_of(role, reason);
  gauges(registry, "muster_operator_memory_limit_bytes",
         "Memory that the operator's container may use; +Inf without a limit")
      .Add({})
      .Set(memory_limit_bytes());
}

prometheus::Counter& OperatorMetrics::passes_of(Result result) {
  return passes_.Add({{"controller", "trainingjob"}, {"result", text(result)}});
}

prometheus::Counter& OperatorMetrics::restarts_of(api::Role role, const std::string& reason) {
  return restarts_.Add({{"role", api::name_of(role)}, {"reason", reason}});
}

void OperatorMetrics::count_tfjob(kube::TfJobReconciler::Count count,
                                  const std::string& name_space) {
  const prometheus::Labels labels = {{"job_namespace", name_space}, {"framework", "tensorflow"}};
  for (const auto& [other, family] : tfjobs_) family->Add(labels);
  tfjobs_.at(count)->Add(labels).Increment();
}

void OperatorMetrics::set_definition(const std::string& version) {
  prometheus::Gauge* const before = shown_definition_;
  shown_definition_ = version.empty() ? nullptr : &definition_.Add({{"version", version}});
  if (shown_definition_ != nullptr) shown_definition_->Set(1);
  if (before != nullptr && before != shown_definition_) definition_.Remove(before);
}

void OperatorMetrics::began(const std::string& key, std::chrono::milliseconds waited) {
  active_.Increment();
  queue_time_.Observe(Seconds(waited).count());
  const MutexLock lock(mutex_);
  ++taken_;
  under_way_[key] = Clock::now();
}

void OperatorMetrics::ended(const std::string& key, Result result) {
  double seconds = 0;
  {
    const MutexLock lock(mutex_);
    const auto begun = under_way_.extract(key);
    if (!begun.empty()) seconds = Seconds(Clock::now() - begun.mapped()).count();
  }
  active_.Decrement();
  work_time_.Observe(seconds);
  pass_time_.Observe(seconds);
  passes_of(result).Increment();
  if (result != Result::error) return;
  errors_.Increment();
  retries_.Increment();
}

void OperatorMetrics::restarted(api::Role role, const std::string& reason, int times) {
  restarts_of(role, reason).Increment(times);
}

void OperatorMetrics::took_first_step(std::chrono::milliseconds since_creation) {
  first_step_.Observe(Seconds(since_creation).count());
}

void OperatorMetrics::update(int waiting_jobs, bool ready) {
  ready_.Set(ready ? 1 : 0);
  depth_.Set(waiting_jobs);
  const MutexLock lock(mutex_);
  // The number of added keys is that of taken keys plus that of waiting keys. At this moment a key
  // may be neither.
  adds_.Increment(std::max(0.0, static_cast<double>(taken_) + waiting_jobs - adds_.Value()));
  double sum = 0, longest = 0;
  for (const auto& [key, begun] : under_way_) {
    const double seconds = Seconds(Clock::now() - begun).count();
    sum += seconds;
    longest = std::max(longest, seconds);
  }
  unfinished_.Set(sum);
  longest_.Set(longest);
}

}  // namespace muster::cmd
