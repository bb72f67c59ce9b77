#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/threads/mutex.h"
#include "operator/kube/api/client.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/cluster/name_conflicts.h"

namespace muster::kube {

// Creates the objects of a job other than its pods, and before its pods: the Services, the Secret,
// and the objects of unwatched_of(). Creates all of them except the Secret again if somebody has
// deleted them, and changes an object that the job's present state wants different. Secrets are
// never read: an existing Secret belongs to this job, because nobody else could know its name.
// Thread-safe.
class Belongings {
 public:
  using Now = std::function<Time()>;
  // `http_peers` is the argument of network_policy_of(), or null. `at_a_time` is the number of a
  // job's Services that are created at the same time.
  Belongings(const Client& client, const Store<Service>& services, NameConflicts& conflicts,
             Json http_peers, size_t at_a_time, Now now)
      : client_(client),
        services_(services),
        conflicts_(conflicts),
        http_peers_(std::move(http_peers)),
        at_a_time_(at_a_time),
        now_(std::move(now)) {}

  // Creates the objects that are missing. Does nothing if all objects were seen: Services at any
  // time, because a watch reports their deletion; objects that no watch covers, at `seen_since` or
  // later. Throws Unavailable. After the server has refused the objects, throws without asking
  // again.
  void ensure(const api::TrainingJob& job, Time seen_since);
  // Whether the server has refused the objects. After this call the server is asked again.
  bool take_refusal(const std::string& job_uid);
  // Notes that a Service has gone from the view.
  void lost_service(const std::string& job_uid);
  void forget(const std::string& job_uid);

 private:
  struct Seen {
    std::string objects;  // digest of the objects; saves memory with thousands of jobs
    std::string keys;     // name of the Secret; may be empty
    Time at;              // when the objects were seen
  };
  std::vector<Json> unwatched_of(const api::TrainingJob& job) const;
  bool begin(const api::TrainingJob& job, const std::vector<Json>& unwatched, Time seen_since);
  void lack(const std::string& job_uid, const ApiStatus& status, const std::string& why);
  void make(const api::TrainingJob& job, const std::vector<Json>& unwatched);
  void make_service(const api::TrainingJob& job, const Json& service);
  void make_keys(const api::TrainingJob& job);
  void make_unwatched(const api::TrainingJob& job, const Json& object);
  std::optional<Json> make_object(const api::TrainingJob& job, const Resource& resource,
                                  const Json& object);

  const Client& client_;
  const Store<Service>& services_;
  NameConflicts& conflicts_;
  const Json http_peers_;
  const size_t at_a_time_;
  const Now now_;
  Mutex mutex_;
  // Both by UID of the job. `refused_` says why the objects could not be made.
  std::map<std::string, Seen> seen_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, std::string> refused_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kube
