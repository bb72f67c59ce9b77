#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"

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
// is a label on them.
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
  bool deleting = false;         // asked to leave
  bool ended_first = false;      // `deleting`, but it had ended by itself before it was asked
  int restarts = 0;              // in place so far, of its container or within it
  std::optional<int> exit_code;  // of its end; of one that lives, before it was restarted last
  std::string node;              // where it runs or ran; empty: nowhere yet, or not known
  std::string reason;  // OOMKilled, Evicted, Preempted, NodeLost, RunnerLost, CrashLoopBackOff,
                       // ImagePullBackOff, ...
  std::string explanation;  // what the cluster says of the reason of one that lives
  std::string last_line;    // of its log, for messages
  // If it was restarted in place: the time from the end of its last process until training went on.
  std::optional<double> outage_seconds;
  std::optional<Time> started, finished;
  bool operator==(const ObservedReplica&) const = default;
};

inline bool is_live(const ObservedReplica& replica) {
  return replica.phase == Phase::pending || replica.phase == Phase::running;
}

// Whether it has ended after somebody asked it to leave, so that its end says nothing of the job.
inline bool left_on_request(const ObservedReplica& replica) {
  return !is_live(replica) && replica.deleting && !replica.ended_first;
}

// Whether the job takes its /progress and results from this replica: the chief, else worker 0.
inline bool leads(const api::TrainingJob& job, Role role, int index) {
  const bool has_chief = job.replicas.contains(Role::chief);
  return index == 0 && role == (has_chief ? Role::chief : Role::worker);
}

// The cluster's view. It may lag behind what was done, but is not older than the view that
// job.status was made from.
struct Observed {
  std::vector<ObservedReplica> replicas;
  Json progress;  // the chief's, or null
  Json results;   // the results of the training, as for status.results; or null
  bool final_checkpoint_evaluated = false;
  std::string nonce;  // of letters and digits that nobody can guess, new with each view
  std::optional<std::string> name_conflict;  // a foreign object that holds one of our names
  std::optional<std::string> invalid_template;
  // This does not stop the creation of replicas.
  std::optional<std::string> unchecked;  // why it is not known whether the cluster can create what
                                         // the job lacks: replicas, or what they need beside them
  std::optional<std::string> quota;      // which quota forbids to create it, and its words:
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
  api::JobStatus status;  // written first; actions only after that write succeeded. A status from
                          // which nothing follows may be put off (Cluster::publish_status)
  std::vector<CreateReplica> create;
  std::vector<RemoveReplica> remove;  // done before `create`. A replica that lives is asked to
                                      // leave and stays in view, deleting, until it has ended; one
                                      // that has ended is forgotten
  std::vector<Event> events;          // emitted only once the status is written
  std::optional<Time> look_again;
  bool remove_job = false;  // ttlSecondsAfterFinished has passed
};

}  // namespace muster::plan
