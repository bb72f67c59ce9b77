#include "operator/cmd/show/attention.h"

#include "common/documents/json.h"
#include "operator/api/status.h"

namespace muster::cmd {

std::optional<api::Time> changed_of(const Json& object) {
  const Json& metadata = member(object, "metadata");
  std::optional<api::Time> newest = api::parse_time(string_or(metadata, "creationTimestamp", ""));
  for (const Json& entry : member(metadata, "managedFields")) {
    if (!string_or(entry, "subresource", "").empty()) continue;
    const auto time = api::parse_time(string_or(entry, "time", ""));
    if (time && (!newest || *newest < *time)) newest = time;
  }
  return newest;
}

bool is_unattended(const api::TrainingJob& job) {
  return job.managed_by == api::kManagedByMuster && !job.deleting &&
         job.status.observed_generation < job.generation;
}

std::string unattended_text(const api::TrainingJob& job) {
  const bool is_new = job.status.observed_generation == 0;
  return std::string("no operator has looked at this job") +
         (is_new ? "" : " since its manifest was changed") +
         ": is one running? `kubectl get pods -A -l app.kubernetes.io/name=muster` shows it";
}

}  // namespace muster::cmd
