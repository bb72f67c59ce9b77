#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/threads/mutex.h"
#include "operator/cluster/forwarding_cluster.h"
#include "operator/kube/api/client.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/cluster/environment.h"
#include "operator/kube/http/leader_transport.h"
#include "operator/kube/kueue/workload.h"

namespace muster::kube {

// A Cluster whose jobs may wait in queues of Kueue (workload.h): a job that names a queue runs only
// while its Workload is admitted, on the nodes and with the workers that were admitted. All the
// rest is the cluster's below it. Thread-safe as that cluster.
class QueuedCluster final : public cluster::ForwardingCluster {
 public:
  // `training_jobs` is the view of `inner`. All references must outlive it. With `enabled` false
  // it does nothing of its own. `sees_queues` says whether Workloads and ResourceFlavors are in
  // view: until then jobs in queues are left alone.
  QueuedCluster(cluster::Cluster& inner, Transport& transport,
                const Store<WholeObject>& training_jobs, PodSettings pods, bool enabled,
                Environment environment, std::function<bool()> sees_queues);

  // Reflectors fill these: Workloads with the label muster.dev/job, and ResourceFlavors.
  Store<WholeObject>& workloads() { return workloads_; }
  Store<WholeObject>& flavors() { return flavors_; }

  std::optional<api::TrainingJob> get(const std::string& key) override;
  plan::Observed observe(const api::TrainingJob& job) override;
  bool publish_status(const api::TrainingJob& job, const api::JobStatus& status) override;

 private:
  void workload_changed(const WholeObject* before, const WholeObject* after);
  // The TrainingJob in view.
  std::optional<WholeObject> object_of(const api::TrainingJob& job) const;
  std::optional<QueueRequest> request_of(const api::TrainingJob& job) const;
  Json workload_of(const api::TrainingJob& job) const;  // the Workload in view; null: none
  Json current_workload_of(const api::TrainingJob& job) const;
  Json flavor_spec(const std::string& name) const;
  void try_later(const api::TrainingJob& job, const std::function<void()>& action);
  void follow(api::TrainingJob& job, const QueueRequest& request, Json workload);
  void tell_of_missing_queues(const api::TrainingJob& job);
  void join(const api::TrainingJob& job, const plan::Observed& observed);
  void join_queue(const api::TrainingJob& job);
  WorkloadPriority default_priority() const;
  WorkloadPriority priority_of(const QueueRequest& request, const Json& workload) const;
  bool follow_suspend(const api::TrainingJob& job, Json workload);
  void tell(const api::TrainingJob& job, const api::JobStatus& status, Json workload);
  void update(const Json& workload, const char* subresource);
  void remove(const Json& workload);
  bool is_new(const std::string& key, const std::string& fewer);
  void set_trouble(const std::string& key, const std::string& trouble);
  std::string trouble_of(const std::string& key) const;
  void forget(const std::string& key);

  const PodSettings pods_;
  const bool enabled_;
  const Environment environment_;
  const std::function<bool()> sees_queues_;
  LeaderTransport transport_;
  const Client client_;
  const Store<WholeObject>& training_jobs_;
  Store<WholeObject> workloads_, flavors_;
  // Remembers of a job the last sentence about fewer workers, why the job cannot join its queue,
  // and since when Kueue's objects have not been in view.
  struct Said {
    std::string fewer, trouble;
    std::optional<api::Time> missed_since;
    bool told_of_missing = false;
  };
  mutable Mutex mutex_;
  std::map<std::string, Said> said_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kube
