#include "operator/cmd/operator/job_metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace muster::cmd {

namespace {

using kube::JobView;
using SampleLabels = std::vector<prometheus::ClientMetric::Label>;

// Writes one metric, whose samples `fill` adds by calling its argument. Only one metric at a time
// is kept in memory, for there may be thousands of jobs.
template <class Fill>
void write(std::ostream& out, const char* name, const char* help, const Fill& fill,
           prometheus::MetricType type = prometheus::MetricType::Gauge) {
  std::vector<prometheus::MetricFamily> family = {{name, help, type, {}}};
  fill([&](SampleLabels labels, double value) {
    prometheus::ClientMetric& metric = family[0].metric.emplace_back();
    metric.label = std::move(labels);
    (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  });
  if (!family[0].metric.empty()) prometheus::TextSerializer().Serialize(out, family);
}

SampleLabels labels_of(const JobView& job, SampleLabels more = {}) {
  SampleLabels labels = {{"namespace", job.name_space}, {"trainingjob", job.name}};
  std::ranges::move(more, std::back_inserter(labels));
  return labels;
}

double seconds_between(api::Time from, api::Time to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

using Views = std::vector<std::shared_ptr<const JobView>>;

void write_states(std::ostream& out, const Views& jobs, api::Time now) {
  write(out, "muster_job_state", "1 for the state of a TrainingJob that has not finished.",
        [&](const auto& add) {
          for (const auto& job : jobs)
            if (job->end_reason.empty()) add(labels_of(*job, {{"state", job->state}}), 1);
        });
  write(out, "muster_job_waiting_seconds",
        "Seconds for which a TrainingJob has waited instead of training, by cause.",
        [&](const auto& add) {
          for (const auto& job : jobs)
            if (!job->cause.empty())
              add(labels_of(*job, {{"cause", job->cause}}), seconds_between(job->waits_since, now));
        });
  write(out, "muster_job_step", "Step of a TrainingJob, as its status has it.",
        [&](const auto& add) {
          for (const auto& job : jobs)
            if (job->step) add(labels_of(*job), static_cast<double>(*job->step));
        });
  write(out, "muster_job_eta_seconds",
        "Seconds until the last step of a TrainingJob, as its status has them.",
        [&](const auto& add) {
          for (const auto& job : jobs)
            if (job->eta) add(labels_of(*job), *job->eta);
        });
  write(out, "muster_job_deadline_timestamp_seconds",
        "Unix time at which activeDeadlineSeconds of a TrainingJob have passed.",
        [&](const auto& add) {
          for (const auto& job : jobs)
            if (job->deadline) add(labels_of(*job), seconds_between({}, *job->deadline));
        });
  write(
      out, "muster_job_end",
      "1 for a TrainingJob that has finished within the last hour, with the reason.",
      [&](const auto& add) {
        for (const auto& job : jobs) {
          if (job->end_reason.empty()) continue;
          const std::string code = job->exit_code ? std::to_string(*job->exit_code) : "";
          add(labels_of(*job,
                        {{"state", job->state}, {"reason", job->end_reason}, {"exit_code", code}}),
              1);
        }
      });
}

void write_replicas(std::ostream& out, const Views& jobs) {
  const auto by_role = [&](const char* name, const char* help, int JobView::Replicas::*number) {
    write(out, name, help, [&](const auto& add) {
      for (const auto& job : jobs)
        for (const auto& [role, replicas] : job->replicas)
          add(labels_of(*job, {{"role", api::name_of(role)}}), replicas.*number);
    });
  };
  by_role("muster_job_replicas_wanted", "Replicas of a TrainingJob that should run, by role.",
          &JobView::Replicas::wanted);
  by_role("muster_job_replicas_ready", "Replicas of a TrainingJob that are ready, by role.",
          &JobView::Replicas::ready);
  by_role("muster_job_restarts", "Restarts of a TrainingJob's replicas since it was made, by role.",
          &JobView::Replicas::restarts);
  write(out, "muster_job_restarts_by_reason",
        "Restarts of a TrainingJob's replicas since it was made, by role and reason.",
        [&](const auto& add) {
          for (const auto& job : jobs)
            for (const auto& [role, replicas] : job->replicas)
              for (const auto& [reason, restarts] : replicas.restarts_by_reason)
                add(labels_of(*job, {{"role", api::name_of(role)}, {"reason", reason}}), restarts);
        });
}

// A use that a job has not had yet is left out: there may be thousands of jobs.
void write_times(std::ostream& out, const controller::Ledgers& ledgers) {
  write(
      out, "muster_job_time_seconds_total",
      "Seconds that a TrainingJob has spent since it was made, by use.",
      [&](const auto& add) {
        ledgers.each([&](const controller::Ledgers::Job& job) {
          for (const TimeUseName& use : time_uses())
            if (const double seconds = job.ledger.spent()[use.use]; seconds > 0)
              add({{"namespace", job.name_space}, {"trainingjob", job.name}, {"use", use.name}},
                  seconds);
        });
      },
      prometheus::MetricType::Counter);
  write(
      out, "muster_namespace_time_seconds_total",
      "Seconds that the TrainingJobs of a namespace have spent since this process leads, by use.",
      [&](const auto& add) {
        for (const auto& [name_space, usage] : ledgers.by_namespace())
          for (const TimeUseName& use : time_uses())
            add({{"namespace", name_space}, {"use", use.name}}, usage.spent[use.use]);
      },
      prometheus::MetricType::Counter);
}

}  // namespace

void write_job_metrics(std::ostream& out, kube::JobStates& jobs, const controller::Ledgers& ledgers,
                       const std::vector<std::string>& refused_tfjobs, api::Time now) {
  write(out, "muster_jobs", "TrainingJobs by namespace and state.", [&](const auto& add) {
    for (const auto& [name_space, by_state] : jobs.counts())
      for (const auto& [state, number] : by_state)
        add({{"namespace", name_space}, {"state", state}}, number);
  });
  const Views views = jobs.views(now);
  write_states(out, views, now);
  write_replicas(out, views);
  write_times(out, ledgers);
  write(out, "muster_tfjob_refused", "1 for a TFJob that cannot be run as a TrainingJob.",
        [&](const auto& add) {
          for (const std::string& key : refused_tfjobs) {
            const size_t slash = key.find('/');
            add({{"namespace", key.substr(0, slash)}, {"tfjob", key.substr(slash + 1)}}, 1);
          }
        });
}

}  // namespace muster::cmd
