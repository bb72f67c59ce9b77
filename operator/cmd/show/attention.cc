#include "operator/cmd/show/attention.h"

#include <algorithm>

#include "common/documents/json.h"
#include "operator/api/status.h"

namespace muster::cmd {

namespace {

// Returns the newest time at which somebody has written to the subresource ("" for the object).
std::optional<api::Time> written(const Json& object, const std::string& subresource) {
  std::optional<api::Time> newest;
  for (const Json& entry : member(member(object, "metadata"), "managedFields")) {
    if (string_or(entry, "subresource", "") != subresource) continue;
    newest = std::max(newest, api::parse_time(string_or(entry, "time", "")));
  }
  return newest;
}

}  // namespace

std::optional<api::Time> changed_of(const Json& object) {
  const Json& metadata = member(object, "metadata");
  const auto created = api::parse_time(string_or(metadata, "creationTimestamp", ""));
  return std::max(created, written(object, ""));
}

std::optional<api::Time> status_written_of(const Json& object) {
  return written(object, "status");
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
