#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/threads/mutex.h"
#include "operator/api/training_job.h"
#include "operator/kube/api/api_error.h"

namespace muster::kube {

// Whether a job can be run, beyond the CRD's own checks.
struct Acceptance {
  std::optional<std::string> invalid;    // why it cannot run without a change
  std::optional<std::string> unchecked;  // why the check gave no answer
  std::optional<api::Time> again;        // when to ask again
  bool operator==(const Acceptance&) const = default;
};

// Judges the template by the API server's refusal of a pod: 400, 422 and a 403 of Pod Security make
// the template invalid; a taken name does not. Everything else (quota, other webhooks, 429, 5xx, a
// webhook without dry run) leaves it unchecked.
Acceptance judge_refusal(const ApiStatus& status);

// Checks jobs by the rules of `muster submit`, by this operator's own rules (Refuse), and by one
// dry run for each distinct pod template (pods.h: template_key). The answer of a dry run is kept as
// long as it is likely to be valid. Thread-safe; if several threads ask for one template at once,
// only one of them asks the server.
class TemplateChecks {
 public:
  // Creates the pod in a dry run; throws ApiInvalid or ApiUnavailable if it is refused.
  using DryRun = std::function<void(const Json& pod)>;
  using PodOf = std::function<Json(api::Role role)>;
  // Returns why this operator does not create such a pod, whatever the server says.
  using Refuse = std::function<std::optional<std::string>(const Json& pod)>;

  TemplateChecks(DryRun dry_run, Refuse refuse)
      : dry_run_(std::move(dry_run)), refuse_(std::move(refuse)) {}

  // Checks a job once for each generation, and again once `again` has come. `whole` is the object
  // as the API server has it.
  Acceptance check(const api::TrainingJob& job, const Json& whole, const PodOf& pod_of,
                   api::Time now);
  // These functions note that a real creation was refused or succeeded. A refusal is stronger than
  // a dry run: older dry runs of this template become void.
  void learn_refusal(const api::TrainingJob& job, const Json& pod, Acceptance refusal,
                     api::Time now);
  void learn_success(const api::TrainingJob& job);
  // Whether the job's last result is anything other than success.
  bool has_trouble(const std::string& job_uid);
  void forget(const std::string& job_uid);

 private:
  struct Job {
    int64_t generation = 0;
    Acceptance acceptance;
  };
  struct Template {
    bool asking = false;
    Acceptance acceptance;
    api::Time asked{};
  };
  Acceptance check_all(const api::TrainingJob& job, const Json& whole, const PodOf& pod_of,
                       api::Time now);
  Acceptance check_template(const Json& pod, api::Time now);
  Acceptance ask(const Json& pod) const;
  void drop_old(api::Time now) MUSTER_REQUIRES(mutex_);

  const DryRun dry_run_;
  const Refuse refuse_;
  Mutex mutex_;
  ConditionVariable answered_;
  std::map<std::string, Job> jobs_ MUSTER_GUARDED_BY(mutex_);            // by UID
  std::map<std::string, Template> templates_ MUSTER_GUARDED_BY(mutex_);  // by key
};

}  // namespace muster::kube
