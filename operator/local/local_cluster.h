#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "common/system/descriptor.h"
#include "operator/cluster/cluster.h"
#include "operator/local/job_directory.h"
#include "operator/local/prober.h"
#include "operator/local/processes/process.h"
#include "operator/local/replica_launch.h"

namespace muster::local {

// A replica that does not answer, and for how long.
struct SilentReplica {
  std::string name;
  std::chrono::seconds since;
};

// A Cluster of one job, with processes of this machine as replicas. One thread constructs the
// object, calls all its functions except wake(), and outlives it, because the replicas die with
// this thread. The caller of the constructor holds the directory's RunLock and has called
// end_leftovers().
class LocalCluster final : public cluster::Cluster {
 public:
  static constexpr std::chrono::seconds kSilent{10};
  using EventSink = std::function<void(const plan::Event&)>;

  // `job` is the present content of the manifest, with state's uid and status. Replicas that run
  // according to `state` were lost when their `muster run` died. Throws WriteError, or Unavailable
  // if no port is free.
  LocalCluster(api::TrainingJob job, JobState state, Setting setting, EventSink on_event);
  ~LocalCluster() override;

  api::Time now() const override;
  std::optional<api::TrainingJob> get(const std::string& key) override;
  plan::Observed observe(const api::TrainingJob& job) override;
  bool publish_status(const api::TrainingJob& job, const api::JobStatus& status) override;
  // Creates the replicas one after the other, in their order.
  void create(const api::TrainingJob& job, std::span<const plan::CreateReplica> replicas) override;
  void remove(const api::TrainingJob& job, std::span<const plan::RemoveReplica> replicas) override;
  void emit(const api::TrainingJob& job, const plan::Event& event) override;
  // Deletes nothing: the directory is the user's.
  void remove_job(const api::TrainingJob& job) override;

  // Waits until `until`, or without limit if it is nothing. Returns true if something happened that
  // the controller should look at: a process ended, a replica became ready, wake(). Returns early,
  // with false, when `descriptor` is readable. Sends SIGKILL to replicas that are past their grace
  // period.
  bool wait(std::optional<api::Time> until, int descriptor);
  // Thread-safe.
  void wake();

  // Makes get() return spec.suspend from now on, whatever the manifest says. An interruption of
  // `muster run` calls this.
  void suspend();
  // Makes get() return `workers` workers from now on. Precondition: the job has workers, and may
  // have this number. Throws Invalid, and changes nothing, if the job's hosts have too few slots.
  void scale(int workers);
  // Sends SIGKILL to every replica.
  void kill_all();
  // Returns the replicas that were ready and have not answered for kSilent or longer: stopped, or
  // stuck.
  std::vector<SilentReplica> silent_replicas() const;

  const api::TrainingJob& job() const { return job_; }
  // Returns the chief's newest /progress (without a chief, worker 0's), or null. It has more fields
  // than status.progress.
  Json progress() const { return prober_.progress(); }
  double wall_seconds() const;
  // Returns all replicas that are in view.
  std::vector<plan::ObservedReplica> replicas() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Replica {
    plan::ObservedReplica seen;
    std::optional<Process> process;
    std::chrono::seconds grace{0};
    std::optional<Clock::time_point> kill_at;
    // For a lost replica: the latest time at which it may still live.
    std::optional<Clock::time_point> over_at;
    uintmax_t log_begin = 0;
    bool has_health = false;
  };

  std::optional<plan::ProcessLedger> ledger_of(Json progress, const Json& results) const;
  void restore_replicas();
  void choose_job_ports();
  void save();
  void create_one(const api::TrainingJob& job, const plan::CreateReplica& wanted);
  void remove_one(const plan::RemoveReplica& wanted);
  void try_to_start(Replica& replica);
  void tell_in_log(const plan::ObservedReplica& seen, const std::string& line) const;
  void start(Replica& replica);
  uintmax_t begin_log(const plan::ObservedReplica& seen);
  void end(Replica& replica, int exit_code);
  void note_end(plan::ObservedReplica& seen);
  bool end_lost();
  bool collect_ended();
  void kill_overdue();
  int poll_timeout(std::optional<api::Time> until) const;

  api::TrainingJob job_;
  JobState state_;
  const Setting setting_;
  const EventSink on_event_;
  const Clock::time_point begun_ = Clock::now();
  const double wall_seconds_before_;
  Descriptor wake_;
  std::list<Replica> replicas_;
  Prober prober_;
};

// Returns the last line of a log, from offset `begin` on, that is not blank; "" if there is none.
std::string last_line_of(const std::filesystem::path& log, uintmax_t begin);

}  // namespace muster::local
