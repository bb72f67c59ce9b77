#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/threads/mutex.h"
#include "operator/kube/api/client.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/cluster/environment.h"
#include "operator/kube/http/leader_transport.h"
#include "operator/kube/tfjob/companion.h"

namespace muster::kube {

// What a Controller of TFJobs does: each TFJob gets the TrainingJob that runs it (companion.h), and
// its status follows the status of that TrainingJob. A key is "<namespace>/<name>" of a TFJob,
// where nothing else is said. Several threads may call it, each for another TFJob.
class TfJobReconciler {
 public:
  struct Settings {
    TakenTfJobs taken = TakenTfJobs::none;
    std::string gang_scheduler;  // schedulingPolicy.gang of all TFJobs; empty: none
  };

  // The counts of jobs that the training-operator has as metrics.
  enum class Count { created, deleted, successful, failed, restarted };

  using Counting = std::function<void(Count count, const std::string& name_space)>;

  // `training_jobs` is the view of TrainingJobs. All references must outlive the reconciler.
  // `environment.wake` asks for a pass of a TFJob.
  TfJobReconciler(Transport& transport, Store<WholeObject>& training_jobs, Settings settings,
                  Environment environment, Counting count);

  // A Reflector fills this store.
  Store<WholeObject>& tfjobs() { return tfjobs_; }
  std::vector<std::string> keys() const { return tfjobs_.keys(); }
  // Returns the key of the TrainingJob that runs the TFJob.
  static std::string companion_key(const std::string& key);

  // Returns the keys of the TFJobs in view that were refused and have not changed since.
  std::vector<std::string> refused() const;

  // Makes one pass for the TFJob. Returns when another one is due, if it is known.
  std::optional<api::Time> reconcile(const std::string& key);
  // Must be called when the TrainingJob with this key, or its status, has changed in view.
  void training_job_changed(const std::string& training_job_key);

 private:
  void tfjob_changed(const WholeObject* before, const WholeObject* after);
  std::optional<api::Time> keep_companion(const Json& tfjob, const Json* companion);
  void tell_of_taken_name(const Json& tfjob, const Json& other);
  void make_companion(const Json& tfjob);
  std::string why_refused(const Json& tfjob, const Invalid& error) const;
  void update_companion(const Json& companion, const Json& tfjob);
  bool change_companion(Json companion, const Json& tfjob);
  void make_anew(const Json& companion);
  // These functions look up and note what was said about a TFJob or tried without success; is_new()
  // returns whether it is the first time.
  bool was_told(const Json& tfjob, const std::string& what) const;
  bool is_new(const Json& tfjob, const std::string& what);
  std::optional<api::Time> end_in_time(const Json& tfjob);
  void note_refusal(const Json& tfjob);
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
  // Maps the key of a companion to the key of its TFJob, if the TFJob's name is longer.
  std::map<std::string, std::string> long_names_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, std::string> refused_ MUSTER_GUARDED_BY(mutex_);         // keys by UID
  std::map<std::string, std::set<std::string>> told_ MUSTER_GUARDED_BY(mutex_);  // by UID
};

}  // namespace muster::kube
