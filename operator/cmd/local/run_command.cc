#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <thread>

#include "common/documents/json.h"
#include "common/program/output.h"
#include "common/system/file.h"
#include "common/system/signals.h"
#include "operator/cmd/job/data_check.h"
#include "operator/cmd/job/job_source.h"
#include "operator/cmd/job/resume.h"
#include "operator/cmd/local/commands.h"
#include "operator/cmd/local/earlier_run.h"
#include "operator/cmd/local/reach_hosts.h"
#include "operator/cmd/local/run_loop.h"
#include "operator/local/checkpoint_request.h"
#include "operator/local/guard.h"
#include "operator/local/hosts/protocol.h"
#include "operator/local/run_lock.h"
#include "operator/local/scale_request.h"
#include "operator/local/yaml_text.h"

namespace muster::cmd {

namespace {

using local::JobDirectory;

// Holds what a run needs before the job's replicas start.
class Preparation {
 public:
  explicit Preparation(const RunOptions& options)
      : options_(options), source_(load_job(options)), out_(options.json ? stderr : stdout) {
    if (!options.hosts.empty()) {
      hosts_ = local::load_hosts(options.hosts);
      copies_ =
          local::list_copies(hosts_->copy, source_.setting.working_directory, directory().root());
    }
    if (!source_.job.training.is_null())
      source_.setting.trainer = hosts_ ? local::kTrainer : require_trainer();
    notes_ = local::check_runs_here(source_.job, source_.document, source_.setting, !hosts_);
    notes_.insert(notes_.end(), source_.notes.begin(), source_.notes.end());
  }

  int run() {
    // An existing directory may hold a finished job or be used by another run. This is known only
    // while the lock is held, so the checks come later. For a new directory the checks come first,
    // so that no directory is created without need.
    const bool has_more = is_there(directory().root()) ? take_up_again() : begin();
    return has_more ? start() : show_finished(source_, state_, options_);
  }

 private:
  const JobDirectory& directory() const { return source_.setting.directory; }

  // This and the next two functions return false if the job has finished already.
  bool begin() {
    check_data();
    check_checkpoint();
    if (options_.go_on)
      notes_.push_back(shown(directory().root()) +
                       " has no job yet: --continue finds nothing to go on from");
    if (!take_directory()) return false;
    reach();
    return true;
  }

  bool take_up_again() {
    if (!take_directory()) return false;
    check_data();
    if (may_live_unseen(source_.job, state_, last_)) {
      print(out_, "waiting {} s: the hosts may not know yet that the last `muster run` has ended\n",
            local::kPatience.count());
      std::fflush(out_);
      std::this_thread::sleep_for(local::kPatience);
    }
    reach();
    check_checkpoint();
    return true;
  }

  // Locks the directory, and takes the state of an earlier run from it.
  bool take_directory() {
    muster::create_directories(directory().replicas());
    last_ = local::RunLock::last_holder(directory());
    lock_.emplace(directory());
    state_ = adopt_state(source_);
    state_.resume = run_command(options_, directory());
    how_ = follow_wishes(source_, state_, options_, notes_);
    return !source_.job.status.is_true("Finished");
  }

  // Checks the data before anything is started.
  void check_data() {
    if (starts_replicas(source_.job)) require_data(source_, out_);
  }

  // Checks the checkpoint to continue from, or the weights to begin with.
  void check_checkpoint() {
    for (std::string& note : check_resume(source_)) notes_.push_back(std::move(note));
  }

  void reach() {
    if (hosts_) reach_hosts(*hosts_, copies_, source_, state_, notes_, out_);
  }

  int start() {
    if (source_.job.all_devices)
      notes_.push_back(fmt::format("{}: spec.training.devices: auto is {}",
                                   source_.document.locate("spec.training.devices"),
                                   integer_or(source_.job.training, "devices", 1)));

    const std::string mark = "MUSTER_JOB_UID=" + state_.uid;
    Descriptor signals = watch_signals({SIGINT, SIGTERM, SIGHUP});
    const local::Guard guard(directory(), *lock_, mark);
    const int leftovers = local::end_leftovers(directory(), mark);
    local::drop_scale_request(directory());  // a request from an earlier run
    local::drop_checkpoint_request(directory());
    write_file_atomically(directory().manifest(), local::to_yaml(source_.document.value()));

    print(out_, "{}: {} in {}\n", source_.job.name, how_, shown(directory().root()));
    if (leftovers > 0) print(out_, "ended {} processes of an earlier run\n", leftovers);
    for (const std::string& note : notes_) {
      if (!note.empty()) print(out_, "note: {}\n", note);
    }
    std::fflush(out_);
    return run_to_the_end(std::move(source_), std::move(state_), options_, std::move(signals));
  }

  const RunOptions& options_;
  JobSource source_;
  FILE* const out_;
  std::optional<local::HostsFile> hosts_;
  std::vector<local::Copy> copies_;
  std::vector<std::string> notes_;
  std::optional<local::ProcessIdentity> last_;
  std::optional<local::RunLock> lock_;
  local::JobState state_;
  const char* how_ = "runs";
};

}  // namespace

int run_job(const RunOptions& options) {
  return Preparation(options).run();
}

}  // namespace muster::cmd
