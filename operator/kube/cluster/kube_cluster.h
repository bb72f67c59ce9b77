#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "operator/cluster/cluster.h"
#include "operator/kube/api/client.h"
#include "operator/kube/api/event_ledger.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/cluster/lost_nodes.h"
#include "operator/kube/cluster/node_leases.h"
#include "operator/kube/cluster/own_writes.h"
#include "operator/kube/cluster/pod_troubles.h"
#include "operator/kube/cluster/pod_writer.h"
#include "operator/kube/cluster/progress_poller.h"
#include "operator/kube/cluster/report_pace.h"
#include "operator/kube/cluster/template_checks.h"
#include "operator/kube/http/leader_transport.h"
#include "operator/kube/pods/pods.h"

namespace muster::kube {

// What happens to a job that somebody may want to count: metrics, for example. Called by the
// threads that call KubeCluster.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void restarted(api::Role role, const std::string& reason, int times) = 0;
  virtual void took_first_step(std::chrono::milliseconds since_creation) = 0;
};

// A Cluster over the Kubernetes API, of all the jobs in view. A key is "<namespace>/<name>".
//
// It looks at mirrors (store.h) that Reflectors fill, completed by its own writes; what a job asks
// for is written by Client, several pods of a job at a time and else one call after the other.
// Several threads may call it, each for another job. What it does is safe when late: names follow
// from the job, creations carry the owner, deletions UID and version, status its version (api.md,
// Acting safely).
//
// Wakes a job when something in view has changed that it does not know already: its own writes do
// not count, unless they leave a pod to be let go whose job has gone.
class KubeCluster final : public cluster::Cluster {
 public:
  struct Settings {
    PodSettings pods;
    double reports_per_second = 20;  // status writes from which nothing follows
    size_t pods_at_a_time = 16;      // of a job, that are created, removed or let go
  };
  // What it needs of the outside.
  struct Environment {
    std::function<api::Time()> now;
    // A job should be looked at, at the latest then. Thread-safe; may be called while KubeCluster
    // is.
    std::function<void(const std::string& key, api::Time at)> wake;
    std::function<void(const EventSubject& subject, EventText text)> emit;
    // Whether this process may write. Asked before each call that does (leader_transport.h).
    // Thread-safe.
    std::function<bool()> leads;
    // Null where nobody looks on.
    Watcher* watcher = nullptr;
    ProgressPoller::Ask ask_progress;  // empty: over HTTP
    NodeLeases::Clock boot_time;       // empty: this machine's
  };
  KubeCluster(Transport& transport, Settings settings, Environment environment);

  // What Reflectors fill: TrainingJobs, and pods and services with the label muster.dev/job.
  Store<WholeObject>& jobs() { return jobs_; }
  Store<Pod>& pods() { return pods_; }
  Store<Service>& services() { return services_; }
  // Keys of the jobs in view, and of those that have gone and left pods behind.
  std::set<std::string> keys() const;
  // How many jobs of ours there are by state (api/overview.h); once a state was there it stays,
  // with 0.
  std::map<std::string, int> jobs_by_state();
  // Until `stop`: see ProgressPoller::run.
  void poll_progress(const std::stop_token& stop) { poller_.run(stop); }

  api::Time now() const override { return environment_.now(); }
  // Nothing, too, for what is there of a job that has gone: its pods are let go.
  std::optional<api::TrainingJob> get(const std::string& key) override;
  plan::Observed observe(const api::TrainingJob& job) override;
  bool publish_status(const api::TrainingJob& job, const api::JobStatus& status) override;
  void create(const api::TrainingJob& job, std::span<const plan::CreateReplica> replicas) override;
  void remove(const api::TrainingJob& job, std::span<const plan::RemoveReplica> replicas) override;
  void emit(const api::TrainingJob& job, const plan::Event& event) override;
  void remove_job(const api::TrainingJob& job) override;

 private:
  void job_changed(const WholeObject* before, const WholeObject* after);
  void pod_changed(const Pod* before, const Pod* after);
  bool is_orphan(const Pod& pod);
  void service_changed(const Service* before, const Service* after);

  std::vector<Pod> pods_of(const api::TrainingJob& job);
  void let_go_orphans(const std::string& name_space, const std::string& name,
                      const std::string& live_uid);
  void let_go_counted(const api::TrainingJob& job, const api::JobStatus& status,
                      const std::vector<Pod>& pods);
  // The state of a job with `training` by the words of its leading replica; empty for other jobs.
  struct View {
    ProgressPoller::Group group;
    std::string silent_node;  // where the leading replica runs, if it does not answer
  };
  View view_of(const api::TrainingJob& job, const std::vector<Pod>& pods);
  plan::ObservedReplica look_at(const api::TrainingJob& job, const View& view, const Pod& pod,
                                const plan::ObservedReplica& by_its_status);
  bool is_lost(const Pod& pod);
  bool is_given_up(const api::TrainingJob& job, const View& view, const Pod& pod,
                   const plan::ObservedReplica& replica);
  void explain_pending(const api::TrainingJob& job, const std::vector<Pod>& pods,
                       std::vector<plan::ObservedReplica>& replicas);
  void follow_progress(const api::TrainingJob& job, const std::vector<Pod>& pods);
  Json progress_of(const api::TrainingJob& job);
  void check_acceptance(const api::TrainingJob& job, plan::Observed& observed);
  static void settle_doubts(plan::Observed& observed);
  std::optional<std::string> still_in_conflict(const api::TrainingJob& job);

  void write_status(const api::TrainingJob& job, const api::JobStatus& status);
  void count(const api::TrainingJob& job, const api::JobStatus& status);
  void keep_belongings(const api::TrainingJob& job, plan::Observed& observed);
  void ensure_belongings(const api::TrainingJob& job, api::Time seen_since);
  void make_belongings(const api::TrainingJob& job, const Json& group);
  bool begin_belongings(const std::string& job_uid, const Json& group_spec, api::Time seen_since);
  void lack_belongings(const std::string& job_uid, const ApiStatus& status, const std::string& why);
  bool take_refusal(const std::string& job_uid);
  void ensure_group(const api::TrainingJob& job, const Json& group);
  std::optional<Json> ensure(const api::TrainingJob& job, const Resource& resource,
                             const Json& object);
  bool is_wanted(const api::TrainingJob& job) const;
  void create_pod(const api::TrainingJob& job, const Json& pod);
  [[noreturn]] void report_conflict(const api::TrainingJob& job, const Resource& resource,
                                    const ObjectName& name, const std::string& found);
  void begin_pass(const std::string& key, const std::string& job_uid);
  void forget(const std::string& job_uid, const std::string& key);
  void note_state(const std::string& job_uid, const api::JobStatus& status);
  void forget_state(const std::string& job_uid);

  const Settings settings_;
  const Environment environment_;
  LeaderTransport transport_;
  const Client client_;
  OwnWrites own_writes_;
  Store<WholeObject> jobs_;
  Store<Pod> pods_;
  Store<Service> services_;
  PodWriter writer_;
  LostNodes lost_nodes_;
  NodeLeases node_leases_;
  PodTroubles troubles_;
  TemplateChecks checks_;
  ReportPace starts_, reports_;
  ProgressPoller poller_;

  struct Conflict {
    Resource resource;
    ObjectName name;
  };
  struct Belongings {
    Json group;      // spec of the PodGroup, or null
    api::Time seen;  // when they were there
  };
  std::mutex mutex_;                         // guards the rest
  std::map<std::string, std::string> uids_;  // by key: of the job that the last pass was about
  std::set<std::string> given_up_;           // UIDs of pods, with their nodes
  // The rest by UID of the job.
  std::map<std::string, Belongings> with_belongings_;  // whose Service and PodGroup are there
  std::map<std::string, std::string> refused_;         // why they could not be made
  std::map<std::string, Conflict> conflicts_;
  std::map<std::string, std::string> states_;
  std::set<std::string> known_states_;
};

}  // namespace muster::kube
