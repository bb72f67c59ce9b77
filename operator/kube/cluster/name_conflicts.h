#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/threads/mutex.h"
#include "operator/api/training_job.h"
#include "operator/kube/api/client.h"

namespace muster::kube {

// Whether an object, as the API server has it, belongs to the job. A Service may also belong to the
// job's TFJob, if the training-operator created it before Muster took the TFJob over.
bool is_of(const api::TrainingJob& job, const Resource& resource, const Json& object);

// The names that our jobs need but objects of other owners have. Thread-safe.
class NameConflicts {
 public:
  explicit NameConflicts(const Client& client) : client_(client) {}

  // Remembers the conflict and throws Unavailable. `found` describes the owner of the object.
  [[noreturn]] void report(const api::TrainingJob& job, const Resource& resource,
                           const ObjectName& name, const std::string& found);
  // Describes the owner of the object that has a name of the job, if that object still exists. Asks
  // the API server, because no watch reports the object's deletion.
  std::optional<std::string> look(const api::TrainingJob& job);
  void forget(const std::string& job_uid);

 private:
  struct Conflict {
    Resource resource;
    ObjectName name;
  };
  const Client& client_;
  Mutex mutex_;
  std::map<std::string, Conflict> conflicts_ MUSTER_GUARDED_BY(mutex_);  // by UID of the job
};

}  // namespace muster::kube
