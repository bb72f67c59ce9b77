#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/threads/mutex.h"
#include "operator/api/training_job.h"
#include "operator/kube/api/client.h"

namespace muster::kube {

// Whether an object, as the API server has it, belongs to the job. A Service may belong to the
// job's TFJob: the training-operator made it, before Muster took the TFJob over.
bool is_of(const api::TrainingJob& job, const Resource& resource, const Json& object);

// Names that our jobs need and that other owners' objects hold. Thread-safe.
class NameConflicts {
 public:
  explicit NameConflicts(const Client& client) : client_(client) {}

  // Remembers the conflict and throws Unavailable. `found` describes the owner of the object.
  [[noreturn]] void report(const api::TrainingJob& job, const Resource& resource,
                           const ObjectName& name, const std::string& found);
  // Describes the owner of the object that holds a name of the job, if it still does. Asks the API
  // server, because nothing tells us when the object goes.
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
