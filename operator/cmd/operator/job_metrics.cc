#include "operator/cmd/operator/job_metrics.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace muster::cmd {

namespace {

using kube::JobView;
using Labels = std::vector<prometheus::ClientMetric::Label>;

class Gauge {
 public:
  Gauge(const char* name, const char* help)
      : family_{name, help, prometheus::MetricType::Gauge, {}} {}
  void add(Labels labels, double value) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    metric.gauge.value = value;
    family_.metric.push_back(std::move(metric));
  }
  void move_to(std::vector<prometheus::MetricFamily>& all) {
    if (!family_.metric.empty()) all.push_back(std::move(family_));
  }

 private:
  prometheus::MetricFamily family_;
};

Labels labels_of(const JobView& job, Labels more = {}) {
  Labels labels = {{"namespace", job.name_space}, {"trainingjob", job.name}};
  std::ranges::move(more, std::back_inserter(labels));
  return labels;
}

double seconds_between(api::Time from, api::Time to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

}  // namespace

std::vector<prometheus::MetricFamily> job_metrics(kube::JobStates& jobs,
                                                  const std::vector<std::string>& refused_tfjobs,
                                                  api::Time now) {
  Gauge counts("muster_jobs", "TrainingJobs by namespace and state.");
  Gauge state("muster_job_state", "1 for the state of a TrainingJob that has not ended.");
  Gauge waiting("muster_job_waiting_seconds",
                "Seconds for which a TrainingJob has waited instead of training, by cause.");
  Gauge wanted("muster_job_replicas_wanted", "Replicas of a TrainingJob that should run, by role.");
  Gauge ready("muster_job_replicas_ready", "Replicas of a TrainingJob that are ready, by role.");
  Gauge restarts("muster_job_restarts",
                 "Restarts of a TrainingJob's replicas since it was made, by role.");
  Gauge step("muster_job_step", "Step of a TrainingJob, as its status has it.");
  Gauge end("muster_job_end",
            "1 for a TrainingJob that has ended within the last hour, with the reason.");
  Gauge refused("muster_tfjob_refused", "1 for a TFJob that cannot be run as a TrainingJob.");
  for (const auto& [name_space, by_state] : jobs.counts())
    for (const auto& [word, number] : by_state)
      counts.add({{"namespace", name_space}, {"state", word}}, number);
  for (const auto& job : jobs.views(now)) {
    if (!job->end_reason.empty()) {
      const std::string code = job->exit_code ? std::to_string(*job->exit_code) : "";
      end.add(labels_of(*job,
                        {{"state", job->state}, {"reason", job->end_reason}, {"exit_code", code}}),
              1);
      continue;
    }
    state.add(labels_of(*job, {{"state", job->state}}), 1);
    if (!job->cause.empty())
      waiting.add(labels_of(*job, {{"cause", job->cause}}), seconds_between(job->waits_since, now));
    if (job->step) step.add(labels_of(*job), static_cast<double>(*job->step));
    for (const auto& [role, replicas] : job->replicas) {
      const auto labels = [&] { return labels_of(*job, {{"role", api::name_of(role)}}); };
      wanted.add(labels(), replicas.wanted);
      ready.add(labels(), replicas.ready);
      restarts.add(labels(), replicas.restarts);
    }
  }
  for (const std::string& key : refused_tfjobs) {
    const size_t slash = key.find('/');
    refused.add({{"namespace", key.substr(0, slash)}, {"tfjob", key.substr(slash + 1)}}, 1);
  }
  std::vector<prometheus::MetricFamily> all;
  for (Gauge* gauge :
       {&counts, &state, &waiting, &wanted, &ready, &restarts, &step, &end, &refused})
    gauge->move_to(all);
  return all;
}

}  // namespace muster::cmd
