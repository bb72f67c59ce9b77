#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/net/http_server.h"
#include "common/threads/mutex.h"
#include "operator/cmd/operator/operator_metrics.h"
#include "operator/controller/controller.h"
#include "operator/kube/api/event_writer.h"
#include "operator/kube/api/lease.h"
#include "operator/kube/cache/reflector.h"
#include "operator/kube/cluster/kube_cluster.h"
#include "operator/kube/cluster/usage_record.h"
#include "operator/kube/kueue/queued_cluster.h"
#include "operator/kube/tfjob/tfjob_reconciler.h"

namespace muster::cmd {

struct OperatorOptions {
  std::vector<std::string> namespaces;  // namespaces with jobs to run; empty: all
  int threads = 8;                      // threads that look at jobs
  std::string http_address;             // "host:port" of /metrics, /healthz, /readyz; empty: none
  bool elects_leader = true;            // false: this process always leads
  kube::LeaseSettings lease;
  // The ConfigMap, in the namespace of the lease, that keeps what jobs have used.
  std::string usage_name = "muster-usage";
  kube::KubeCluster::Settings cluster;
  bool kueue = false;                      // jobs may wait in queues of Kueue
  kube::TfJobReconciler::Settings tfjobs;  // which TFJobs run, beside TrainingJobs
};

// Wakes threads that wait for something to do.
class WorkSignal {
 public:
  uint64_t count() const;
  void raise();
  // Waits until the signal was raised more than `seen` times, `most` has passed, or `stop`.
  void wait(uint64_t seen, std::chrono::milliseconds most, const std::stop_token& stop);

 private:
  mutable Mutex mutex_;
  StoppableConditionVariable changed_;
  uint64_t count_ MUSTER_GUARDED_BY(mutex_) = 0;
};

// Everything of muster-operator except its command line and its connections: mirrors of jobs, pods
// and services, leader election, and, while it leads, threads that look at jobs. A process that has
// lost its lease must end: its knowledge may be old, and a new process starts quickly.
class OperatorProcess {
 public:
  // Connections to one server. Renewals of the lease have a separate connection, because they must
  // not wait for other calls, which may be many and slow.
  struct Transports {
    kube::Transport& calls;
    kube::Transport& lease;
  };
  // The transports and `registry` (where they count their requests) must outlive this object.
  OperatorProcess(Transports transports, prometheus::Registry& registry, OperatorOptions options);
  ~OperatorProcess();
  OperatorProcess(const OperatorProcess&) = delete;
  OperatorProcess& operator=(const OperatorProcess&) = delete;

  // Runs until `stop`, then gives up the lease and returns true. Returns false if the process has
  // lost the lease.
  bool run(const std::stop_token& stop);

  std::string metrics_text();
  bool ready() const;  // whether the mirrors are complete

 private:
  kube::Environment environment();
  kube::Environment environment_of_tfjobs();
  // Adds the new reflectors to `group`; null: nothing waits for them.
  using Reflectors = std::vector<const kube::Reflector*>;
  template <class T>
  void watch(kube::Store<T>& store, const kube::Resource& resource,
             const std::string& label_selector, Reflectors* group);
  void watch_queues();
  void add_reflector(kube::Mirror& mirror, kube::Reflector::Settings settings, Reflectors* group);
  void serve();
  bool wait_to_lead(const std::stop_token& stop);
  void begin_to_act();
  static void work(controller::Controller& controller, WorkSignal& signal,
                   const std::stop_token& stop);
  void watch_definition(const std::stop_token& stop);

  const OperatorOptions options_;
  prometheus::Registry& registry_;
  kube::Transport& transport_;
  OperatorMetrics metrics_;
  WorkSignal work_, tfjob_work_;    // raised when a job, or a TFJob, has been woken
  std::atomic<bool> acts_ = false;  // false: no job waits in the queue
  std::stop_source lost_;           // requested by the stop of run() and by the loss of the lease
  kube::LeaderElection election_;
  kube::EventWriter events_;
  kube::KubeCluster cluster_;
  kube::QueuedCluster queued_;
  controller::Controller controller_;
  std::optional<kube::UsageRecord> usage_;  // once this process leads
  kube::TfJobReconciler tfjobs_;
  controller::Controller tfjob_controller_;
  std::vector<std::unique_ptr<kube::Mirror>> parts_;  // mirrors of single namespaces
  std::vector<std::unique_ptr<kube::Reflector>> reflectors_;
  Reflectors needed_;     // the process waits for their first lists
  Reflectors of_queues_;  // only jobs in queues wait for their first lists
  std::optional<HttpServer> http_;
};

}  // namespace muster::cmd
