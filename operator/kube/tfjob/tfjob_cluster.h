#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "common/error.h"
#include "common/threads/mutex.h"
#include "operator/cluster/forwarding_cluster.h"
#include "operator/kube/api/client.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/cluster/environment.h"
#include "operator/kube/http/leader_transport.h"
#include "operator/kube/tfjob/companion.h"

namespace muster::kube {

// A Cluster whose jobs may be TFJobs: before a job is looked at, its TFJob gets the TrainingJob
// that runs it (companion.h), and whenever the job's status has changed, the TFJob's follows. All
// the rest is the cluster's below it. Keys are those of TrainingJobs. Thread-safe as that cluster.
class TfJobCluster final : public cluster::ForwardingCluster {
 public:
  struct Settings {
    TakenTfJobs taken = TakenTfJobs::none;
    std::string gang_scheduler;  // schedulingPolicy.gang of all TFJobs; empty: none
  };

  // The counts of jobs that the training-operator has as metrics.
  enum class Count { created, deleted, successful, failed, restarted };

  using Counting = std::function<void(Count count, const std::string& name_space)>;

  // `training_jobs` is the view of `inner`. All references must outlive it.
  TfJobCluster(cluster::Cluster& inner, Transport& transport, Store<WholeObject>& training_jobs,
               Settings settings, Environment environment, Counting count);

  // A Reflector fills this store.
  Store<WholeObject>& tfjobs() { return tfjobs_; }
  // Returns the keys of the companions of all TFJobs in view.
  std::set<std::string> keys() const;

  std::optional<api::TrainingJob> get(const std::string& key) override;
  bool publish_status(const api::TrainingJob& job, const api::JobStatus& status) override;

 private:
  void tfjob_changed(const WholeObject* before, const WholeObject* after);
  // Returns the TFJob whose companion has this key, if there is one and this operator runs it.
  std::optional<Json> tfjob_of(const std::string& key) const;
  // Returns the TFJob that the job belongs to.
  std::optional<Json> tfjob_of(const api::TrainingJob& job) const;
  void try_later(const std::string& key, const std::function<void()>& action);
  void keep_companion(const std::string& key, const Json& tfjob, const Json* companion);
  void tell_of_taken_name(const Json& tfjob, const Json& other);
  void make_companion(const std::string& key, const Json& tfjob);
  std::string why_refused(const Json& tfjob, const Invalid& error) const;
  void update_companion(const std::string& key, const Json& companion, const Json& tfjob);
  bool change_companion(const std::string& key, Json companion, const Json& tfjob);
  void make_anew(const std::string& key, const Json& companion);
  // These functions look up and note what was said about a TFJob or tried without success; is_new()
  // returns whether it is the first time.
  bool was_told(const Json& tfjob, const std::string& what) const;
  bool is_new(const Json& tfjob, const std::string& what);
  void end_in_time(const std::string& key, const Json& tfjob);
  void tell(const Json& tfjob, const api::TrainingJob& job, const api::JobStatus& status);
  void write_status(const Json& tfjob, const Json& status);
  void emit(const Json& tfjob, EventText text) const;

  const Settings settings_;
  const Environment environment_;
  const Counting count_;
  LeaderTransport transport_;
  const Client client_;
  Store<WholeObject>& training_jobs_;
  Store<WholeObject> tfjobs_;
  mutable Mutex mutex_;
  // From the key of a companion to the key of its TFJob, if the TFJob's name is longer.
  std::map<std::string, std::string> long_names_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, std::set<std::string>> told_ MUSTER_GUARDED_BY(mutex_);  // by UID
};

}  // namespace muster::kube
