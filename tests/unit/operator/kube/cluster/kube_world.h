#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "operator/controller/controller.h"
#include "operator/kube/cluster/kube_cluster.h"
#include "operator/kube/kueue/queued_cluster.h"
#include "operator/kube/tfjob/tfjob_reconciler.h"
#include "tests/unit/operator/kube/fake_api_server.h"

namespace muster::kube {

// An operator (controller, KubeCluster, mirrors) on a FakeApiServer, with a clock that the test
// moves, and with the rights that the chart gives it. It can be killed and started anew.
class KubeWorld : public Watcher {
 public:
  // `pods_at_a_time`: more than one make calls from threads of their own.
  explicit KubeWorld(size_t pods_at_a_time = 1);

  FakeApiServer server;
  api::Time time{std::chrono::hours(24 * 365 * 56)};
  bool leads = true;
  std::set<std::string> allowed_accounts;     // of the next operator
  bool sees_queues = true;                    // else Workloads are not in view
  bool tells_of_workloads = true;             // else their view stays as it is
  bool tells_of_pods = true;                  // else the view of pods stays as it is
  std::vector<std::string> events, messages;  // "mnist: Started", and what it says
  std::vector<controller::Controller::Trouble> troubles;
  int wakes = 0;  // for now, not for later
  std::string first_step, restarts;
  std::map<TfJobReconciler::Count, int> tfjobs_counted;
  ProgressPoller::Ask ask_progress;

  // The manifest `job`, as the server keeps it.
  void submit(const std::string& name = "mnist", const Json& more_of_spec = Json::object(),
              const Json& labels = Json::object());
  // Tells the mirrors what has happened, and lets the controller do what is due, until nothing is.
  void settle();
  // The same, and moves the clock to whatever is due within this time.
  void run_for(std::chrono::milliseconds time);
  // Forgets everything that is not in the server.
  void restart_operator();
  // Another operator goes on; this one, which may be in the middle of something, stays as it is.
  void take_over();
  void see_workloads() { server.tell(operator_->queued.workloads(), "workloads"); }
  KubeCluster& cluster() { return operator_->cluster; }
  TfJobReconciler& reconciler() { return operator_->tfjobs; }
  void wake(const std::string& key, api::Time at);
  void wake_tfjob(const std::string& key, api::Time at);

  Json job(const std::string& name = "mnist") { return server.object("trainingjobs", name); }
  // "True ChiefSucceeded", or "" where there is none.
  std::string condition(const std::string& type, const std::string& job = "mnist");
  // Name of the newest pod of a replica ("worker-0"); fails the test where there is none.
  std::string pod(const std::string& replica, const std::string& job = "mnist");
  // "chief-0.0 ps-0.1": role, index and attempt of the pods there are, by name.
  std::string pods();
  void run_all();  // every pod that is pending runs and is ready

  void restarted(api::Role role, const std::string& reason, int times) override;
  void took_first_step(std::chrono::milliseconds since_creation) override;

 private:
  struct Operator {
    explicit Operator(KubeWorld& world);
    KubeCluster cluster;
    QueuedCluster queued;
    controller::Controller controller;
    TfJobReconciler tfjobs;
    controller::Controller tfjob_controller;
    // Both controllers do what is due. Returns in how long the next pass is due.
    std::optional<std::chrono::milliseconds> work();
  };
  Environment environment();
  Environment environment_of_tfjobs();

  const size_t pods_at_a_time_;
  std::unique_ptr<Operator> operator_;
  std::vector<std::unique_ptr<Operator>> paused_;
  // Before there are controllers.
  std::vector<std::pair<std::string, api::Time>> early_wakes_, early_wakes_of_tfjobs_;
};

}  // namespace muster::kube
