#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/plan/job_ledger.h"

namespace muster::plan {

// The values between a cluster and the plan: a cluster returns Observed, and carries out a Plan.

using api::Role;
using api::Time;

enum class Phase { pending, running, succeeded, failed };

// A replica (a process or a pod) as the cluster sees it.
//
// Its identity is (role, index, attempt) alone. Attempts are never reused within a job, and an
// index gets its next attempt only after the end of the one before was seen. So it is always
// harmless to create the same attempt again (it exists already, or it is gone), and no view,
// however old, leads to two replicas of one index. A cluster names replicas by these three; `run`
// is only a label.
//
// A cluster reports a replica on a node that it has given up as `failed` with reason NodeLost: the
// plan replaces it without waiting for the node. A living replica with reason CrashLoopBackOff is
// counted as failed and replaced. A replica that `failed` without having started is no failure if
// it was asked to leave.
struct ObservedReplica {
  Role role = Role::worker;
  int index = 0;
  int run = 0;  // JobStatus::run it was created in
  int attempt = 0;
  std::string uid;
  Phase phase = Phase::pending;
  bool ready = false;
  bool deleting = false;  // it was asked to leave
  // `deleting` is set, but the replica had ended by itself before it was asked to leave.
  bool ended_first = false;
  int restarts = 0;  // restarts in place so far: of its container, or within the container
  // Exit code of its end; for a living replica, of the end before its last restart.
  std::optional<int> exit_code;
  std::string node;    // the node that it runs or ran on; empty: none yet, or not known
  std::string reason;  // OOMKilled, Evicted, Preempted, NodeLost, RunnerLost, CrashLoopBackOff,
                       // ImagePullBackOff, ...
  std::string explanation;  // the cluster's words on the reason of a living replica
  std::string last_line;    // the last line of its log, for messages
  // If it was restarted in place: the time from the end of its last process until training went on.
  std::optional<double> outage_seconds;
  std::optional<Time> started, finished;
  bool operator==(const ObservedReplica&) const = default;
};

inline bool is_live(const ObservedReplica& replica) {
  return replica.phase == Phase::pending || replica.phase == Phase::running;
}

// Whether the replica has ended after it was asked to leave, so that its end has no meaning for the
// job.
inline bool left_on_request(const ObservedReplica& replica) {
  return !is_live(replica) && replica.deleting && !replica.ended_first;
}

// Whether the job takes its /progress and results from this replica: the chief, else worker 0.
inline bool leads(const api::TrainingJob& job, Role role, int index) {
  const bool has_chief = job.replicas.contains(Role::chief);
  return index == 0 && role == (has_chief ? Role::chief : Role::worker);
}

// The cluster's view. The view may lag behind the actions taken, but it is not older than the view
// that job.status was made from.
struct Observed {
  std::vector<ObservedReplica> replicas;
  Json progress;                        // the chief's progress, or null
  std::optional<ProcessLedger> ledger;  // the chief's, if it tells one
  Json results;  // the results of the training, as for status.results; or null
  bool final_checkpoint_evaluated = false;
  std::string nonce;  // letters and digits that nobody can guess; each view has new ones
  std::optional<std::string> name_conflict;  // a foreign object that holds one of our names
  std::optional<std::string> invalid_template;
  // This does not stop the creation of replicas.
  std::optional<std::string> unchecked;  // why it is not known whether the cluster can create the
                                         // missing replicas and the objects that they need
  std::optional<std::string> quota;      // the quota that forbids creating them, and its words:
                                         // "compute: requested: pods=1, used: ..."
};

struct CreateReplica {
  Role role;
  int index;
  int run;
  int attempt;
  bool operator==(const CreateReplica&) const = default;
};
struct RemoveReplica {
  Role role;
  int index;
  std::string uid;
  bool operator==(const RemoveReplica&) const = default;
};
struct Event {
  enum class Kind { normal, warning } kind = Kind::normal;
  std::string reason;
  std::string message;
};

struct Plan {
  // Written first; actions follow only after this write has succeeded. The write of a status that
  // no action depends on may be put off (Cluster::publish_status).
  api::JobStatus status;
  std::vector<CreateReplica> create;
  // Carried out before `create`. A living replica is asked to leave and stays in view, deleting,
  // until it has ended; an ended replica is removed.
  std::vector<RemoveReplica> remove;
  std::vector<Event> events;  // emitted only once the status is written
  std::optional<Time> look_again;
  bool remove_job = false;  // ttlSecondsAfterFinished has passed
  // The use of the job's time from now on, as far as the cluster shows it.
  TimeUse use = TimeUse::unknown;
};

}  // namespace muster::plan
