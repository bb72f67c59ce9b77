#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <thread>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "common/random.h"
#include "common/system/descriptor.h"
#include "common/system/file.h"
#include "common/system/process.h"
#include "common/system/signals.h"
#include "operator/api/status.h"
#include "operator/cmd/job/data_check.h"
#include "operator/cmd/job/job_source.h"
#include "operator/cmd/job/results.h"
#include "operator/cmd/job/resume.h"
#include "operator/cmd/job/scale.h"
#include "operator/cmd/local/commands.h"
#include "operator/cmd/local/reach_hosts.h"
#include "operator/cmd/show/display.h"
#include "operator/cmd/show/summary.h"
#include "operator/cmd/show/summary_text.h"
#include "operator/cmd/show/warnings.h"
#include "operator/controller/controller.h"
#include "operator/local/checkpoint_request.h"
#include "operator/local/guard.h"
#include "operator/local/hosts/protocol.h"
#include "operator/local/local_cluster.h"
#include "operator/local/run_lock.h"
#include "operator/local/scale_request.h"
#include "operator/local/yaml_text.h"
#include "operator/plan/retry.h"

namespace muster::cmd {

namespace {

using local::JobDirectory;
using local::JobState;

// Shortest time between two writes of progress.
constexpr auto kStatusPeriod = std::chrono::seconds(1);
constexpr auto kLogPeriod = std::chrono::milliseconds(500);
constexpr size_t kMostChanges = 5;                  // most changes that are named
constexpr auto kRemind = std::chrono::seconds(30);  // time between reminders of a repeated failure

// Returns a random (version 4) UUID.
std::string new_uid() {
  const uint64_t high = (random_number() & ~0xf000ULL) | 0x4000ULL;
  const uint64_t low = (random_number() >> 2) | 0x8000000000000000ULL;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffffULL);
}

// Returns the state of an earlier run of the same directory, or a new one; `job` gets its values.
JobState adopt_state(JobSource& source) {
  const JobDirectory& directory = source.setting.directory;
  api::TrainingJob& job = source.job;
  JobState state;
  if (std::optional<JobState> known = local::load_state(directory)) {
    state = std::move(*known);
    if (state.name != job.name) {
      throw Invalid(shown(directory.root()) + ": expected a directory of the job " + job.name +
                    ", found one of " + state.name + "; choose another --directory");
    }
    const bool scaled = state.workers.has_value();
    state.workers.reset();  // the manifest's number counts again
    if (scaled || !changes_since_last_run(source).empty()) ++state.generation;
  } else {
    state.name = job.name;
    state.uid = new_uid();
  }
  job.uid = state.uid;
  job.generation = state.generation;
  job.status = api::to_job_status(state.status);
  return state;
}

class Run {
  using Clock = std::chrono::steady_clock;

 public:
  Run(JobSource source, JobState state, const RunOptions& options, Descriptor signals)
      : source_(source),
        options_(options),
        signals_(std::move(signals)),
        display_(options.json ? stderr : stdout),
        warnings_(directory().logs()),
        cluster_(std::move(source.job), std::move(state), std::move(source.setting),
                 [this](const plan::Event& event) { show(event); }),
        controller_(cluster_, [this](const auto& trouble) { report(trouble); }) {}

  int run() {
    controller_.wake(name());
    while (!is_over()) {
      const std::optional<std::chrono::milliseconds> next = controller_.work();
      if (is_over()) break;
      if (cluster_.wait(earliest(next), signals_.get())) controller_.wake(name());
      while (const std::optional<int> number = read_signal(signals_)) interrupt(*number);
      follow_scale_request();
      if (cluster_.now() >= next_status_) {
        next_status_ = cluster_.now() + kStatusPeriod;
        if (controller_.failures(name()) == 0)
          controller_.wake(name());  // otherwise its back-off applies
      }
      show_warnings();
      tell_silence();
      display_.update(cluster_.job(), cluster_.progress());
    }
    next_logs_ = {};
    show_warnings();
    display_.clear();
    return conclude();
  }

 private:
  std::string name() const { return cluster_.job().name; }
  const api::JobStatus& status() const { return cluster_.job().status; }

  bool is_over() const {
    // Suspended may still be true from an earlier run, until the first plan.
    const bool suspended = cluster_.job().suspend && status().is_true("Suspended");
    return given_up_ || status().is_true("Finished") || suspended;
  }

  // Whether the job is ending anyway. A replica that is killed at that time might be started again,
  // to end with success.
  bool is_decided() const {
    return status().is_true("SuccessCriteriaMet") || status().is_true("FailureTarget");
  }

  std::optional<api::Time> earliest(std::optional<std::chrono::milliseconds> next) const {
    api::Time result = display_.next();
    result = std::min({result, next_status_, next_logs_});
    return next ? std::min(result, cluster_.now() + *next) : result;
  }

  void interrupt(int number) {
    // If both signals come at once, as `muster stop --now` sends them, SIGTERM counts.
    if (signal_ == 0 || number == SIGTERM) signal_ = number;
    ++interruptions_;
    if (interruptions_ == 1) {
      display_.print(stopping_text());
      cluster_.suspend();
    } else if (interruptions_ == 2 && !is_decided() && controller_.failures(name()) == 0) {
      display_.print("killing the replicas");
      cluster_.kill_all();
    } else {
      given_up_ = 128 + signal_;
    }
  }

  const char* stopping_text() const {
    if (is_decided()) {
      return "the job has come to its end already, and its last replicas leave; again to kill them "
             "now";
    }
    return cluster_.job().training.is_null()
               ? "stopping: the replicas are asked to end; again to kill them now"
               : "stopping: the job saves a checkpoint and leaves; again to kill it now";
  }

  void follow_scale_request() {
    const std::optional<int> workers = local::take_scale_request(directory());
    if (!workers) return;
    try {
      require_scalable_here(directory(), cluster_.job(), *workers);
      const std::string text = scaled_text(cluster_.job(), *workers);
      cluster_.scale(*workers);
      display_.print(text);
    } catch (const Invalid& error) {
      display_.print(std::string("warning: not scaled: ") + error.what());
    }
  }

  void report(const controller::Controller::Trouble& trouble) {
    if (trouble.invalid) return give_up(trouble.broken ? kInternal : kBadInput, trouble.message);
    if (trouble.lasting) return give_up(kCannotWrite, trouble.message);
    // The user has asked twice for an end: nothing is waited for any more.
    if (interruptions_ > 1) return give_up(128 + signal_, trouble.message);
    const auto now = Clock::now();
    if (trouble.failures == 1) trouble_since_ = now;
    if (trouble.failures == 1 || now - trouble_told_ > kRemind) {
      trouble_told_ = now;
      display_.print("warning: " + trouble.message + " (will try again)");
    }
    std::error_code error;
    const bool is_there = std::filesystem::exists(directory().root(), error) || error;
    if (!is_there || now - trouble_since_ > kStoragePatience) {
      give_up(kCannotWrite, trouble.message);
    }
  }

  void give_up(int exit_code, const std::string& why) {
    given_up_ = exit_code;
    why_ = why;
  }

  // Shows an event, unless conclude() (the end) or the line of progress (the course) reports it.
  // The event of the decision is shown with its cause.
  void show(const plan::Event& event) {
    const char* const kTold[] = {"Started", "Running", "Succeeded", "Failed"};
    if (std::ranges::find(kTold, event.reason) != std::end(kTold)) return;
    const api::Condition* target = status().find("FailureTarget");
    if (target == nullptr || target->message != event.message) return display_.event(event);
    told_cause_ = true;
    display_.event({event.kind, event.reason,
                    "the job fails " + cause_text(cluster_.job(), cluster_.replicas())});
  }

  // Warns of a replica that does not answer: a stopped or stuck member makes all others wait
  // without a message.
  void tell_silence() {
    std::set<std::string> silent;
    for (const local::SilentReplica& replica : cluster_.silent_replicas()) {
      silent.insert(replica.name);
      if (silent_.contains(replica.name)) continue;
      display_.event({plan::Event::Kind::warning, "Silent",
                      fmt::format("{} has not answered for {} s: it is stopped or stuck, and the "
                                  "others may be waiting for it",
                                  replica.name, replica.since.count())});
    }
    silent_ = std::move(silent);
  }

  // Shows the warnings of replicas: nobody reads the logs while everything works.
  void show_warnings() {
    if (cluster_.now() < next_logs_) return;
    next_logs_ = cluster_.now() + kLogPeriod;
    for (const std::string& text : warnings_.read()) {
      display_.event({plan::Event::Kind::warning, "ReplicaWarning", text});
    }
  }

  int conclude() {
    if (given_up_) {
      display_.print("gave up on " + name() + (why_.empty() ? "" : ": " + why_) +
                     "; its replicas are killed. To resume: " + run_command(options_, directory()));
      return *given_up_;
    }
    const Json summary =
        summary_of(directory(), cluster_.job(), cluster_.replicas(), cluster_.wall_seconds());
    write_summary(summary.dump(2) + "\n");
    const int code = exit_code_of(cluster_.job(), cluster_.replicas(), summary);
    if (status().is_true("Failed")) {
      if (!told_cause_) {
        display_.print(name() + " failed " + cause_text(cluster_.job(), cluster_.replicas()));
      }
      display_.print(log_end_text(cluster_.job(), cluster_.replicas(), directory()));
    }
    display_.print(summary_text(name(), with_shown_files(summary, directory())));
    display_.print(next_words(code));
    if (options_.json) print(stdout, "{}\n", summary.dump(2));
    require_results(directory(), summary);
    if (status().is_true("Suspended")) return signal_ != 0 ? 128 + signal_ : kSuccess;
    return code;
  }

  // Writes the summary. If the disk is full, waits as long as replicas do, or until an
  // interruption.
  void write_summary(const std::string& text) {
    const auto until = Clock::now() + kStoragePatience;
    for (bool told = false;; told = true) {
      try {
        return write_file_atomically(directory().summary(), text);
      } catch (const WriteError& error) {
        const bool asked_twice = interruptions_ > 1;
        if (error.lasting() || asked_twice || Clock::now() > until || read_signal(signals_)) throw;
        if (!told) display_.print(std::string("warning: ") + error.what() + " (will try again)");
      }
      cluster_.wait(cluster_.now() + kStatusPeriod, signals_.get());
    }
  }

  // Returns a hint on what the user may want to do next, or "".
  std::string next_words(int code) const {
    if (status().is_true("Failed")) return how_to_retry(source_, options_, code);
    if (!status().is_true("Suspended")) return "";
    return signal_ != 0 ? "To resume: " + run_command(options_, directory())
                        : "The manifest says suspend: nothing runs";
  }

  const JobDirectory& directory() const { return source_.setting.directory; }

  const JobSource source_;
  const RunOptions options_;
  const Descriptor signals_;
  Display display_;
  Warnings warnings_;
  local::LocalCluster cluster_;
  controller::Controller controller_;
  api::Time next_status_{};
  api::Time next_logs_{};
  int interruptions_ = 0;
  int signal_ = 0;
  bool told_cause_ = false;
  std::set<std::string> silent_;  // replicas that were reported as silent
  std::optional<int> given_up_;   // the exit code
  std::string why_;
  Clock::time_point trouble_since_;
  Clock::time_point trouble_told_;
};

// Says once more that the job has finished, in an earlier run.
int show_finished(const JobSource& source, const JobState& state, const RunOptions& options) {
  const JobDirectory& directory = source.setting.directory;
  const Json summary = summary_of(directory, source.job, state.replicas, state.wall_seconds);
  FILE* out = options.json ? stderr : stdout;
  const int code = exit_code_of(source.job, state.replicas, summary);
  const bool failed = source.job.status.is_true("Failed");
  if (failed) {
    print(out, "{} failed {}\n{}\n", source.job.name, cause_text(source.job, state.replicas),
          log_end_text(source.job, state.replicas, directory));
  }
  print(out, "{}\n", summary_text(source.job.name, with_shown_files(summary, directory)));
  if (options.json) print(stdout, "{}\n", summary.dump(2));
  if (failed) {
    print(out, "It had failed already. {}\n", how_to_retry(source, options, code));
    return code;
  }
  require_results(directory, summary);
  const auto changed = changes_since_last_run(source);
  if (changed.empty()) {
    print(out, "It had finished already. {} run it anew, give it another --directory\n",
          source.job.training.is_null() ? "To"
                                        : "To train on, give it more epochs and --continue; to");
    return code;
  }
  throw Invalid(fmt::format(
      "{}: expected the manifest of the job that has finished here, found one that differs in {}: "
      "nothing was run; to train on by it, give it more epochs and --continue; to run it anew, "
      "give it another --directory",
      shown(directory.root()), spec::list_changes(changed, kMostChanges)));
}

// Whether the user asks for more of a job that has succeeded. Throws Invalid for a job without
// `training`, because what its program would do is not known.
bool trains_on(const JobSource& source, const RunOptions& options) {
  if (!options.go_on || !source.job.status.is_true("Succeeded")) return false;
  if (changes_since_last_run(source).empty()) return false;
  if (!source.job.training.is_null()) {
    const std::string nothing = nothing_to_train(source);
    if (nothing.empty()) return true;
    throw Invalid(shown(source.setting.directory.root()) + ": --continue: " + nothing);
  }
  throw Invalid(
      "--continue: expected a job with spec.training, found one that runs a program of "
      "its own: give it another --directory",
      kUsage);
}

// Checks the data before anything is started.
void look_at_data(const JobSource& source, FILE* out) {
  if (starts_replicas(source.job)) require_data(source, out);
}

// Checks the checkpoint to continue from, or the weights to begin with. Adds to `notes`.
void look_at_checkpoint(const JobSource& source, std::vector<std::string>& notes) {
  for (std::string& note : check_resume(source)) notes.push_back(std::move(note));
}

// Whether other hosts may still run replicas of a `muster run` that was lost with its machine. Such
// replicas end only when their own timeout (kPatience) has passed.
bool may_live_unseen(const api::TrainingJob& job, const JobState& state,
                     const std::optional<local::ProcessIdentity>& last) {
  const auto self = local::ProcessIdentity::of(::getpid());
  const bool another_boot = !last || !self || last->boot != self->boot;
  return another_boot && job.training.is_null() && !state.addresses.hosts.empty() &&
         std::ranges::any_of(state.replicas, plan::is_live);
}

// Makes a failed job continue. Returns a warning that advises against it, or "".
std::string retry_failed(JobSource& source, JobState& state) {
  const int code = exit_code_of(source.job, state.replicas, Json());
  std::string warning = retry_warning(source, code);
  source.job.status = plan::retry(source.job);
  state.status = api::to_json(source.job.status);
  return warning;
}

}  // namespace

int run_job(const RunOptions& options) {
  JobSource source = load_job(options);
  std::optional<local::HostsFile> hosts;
  std::vector<local::Copy> copies;
  if (!options.hosts.empty()) {
    hosts = local::load_hosts(options.hosts);
    copies = local::list_copies(hosts->copy, source.setting.working_directory,
                                source.setting.directory.root());
  }
  if (!source.job.training.is_null())
    source.setting.trainer = hosts ? local::kTrainer : require_trainer();
  std::vector<std::string> notes =
      local::check_runs_here(source.job, source.document, source.setting, !hosts);
  notes.insert(notes.end(), source.notes.begin(), source.notes.end());
  const JobDirectory directory = source.setting.directory;
  FILE* out = options.json ? stderr : stdout;
  // An existing directory may hold a finished job or be used by another run. This is known only
  // while the lock is held, so the checks come later. For a new directory the checks come first, so
  // that no directory is created without need.
  const bool is_new = !is_there(directory.root());
  if (is_new) {
    look_at_data(source, out);
    look_at_checkpoint(source, notes);
  }
  if (is_new && options.go_on)
    notes.push_back(shown(directory.root()) +
                    " has no job yet: --continue finds nothing to go on from");
  muster::create_directories(directory.replicas());
  const auto last = local::RunLock::last_holder(directory);
  const local::RunLock lock(directory);
  JobState state = adopt_state(source);
  state.resume = run_command(options, directory);
  const bool retries = options.retry && source.job.status.is_true("FailureTarget");
  if (retries) notes.push_back(retry_failed(source, state));
  const bool goes_on = trains_on(source, options);
  if (goes_on) {
    source.job.status = plan::train_on(source.job);
    state.status = api::to_json(source.job.status);
  }
  if (source.job.status.is_true("Finished")) return show_finished(source, state, options);
  if (!is_new) look_at_data(source, out);
  if (may_live_unseen(source.job, state, last)) {
    print(out, "waiting {} s: the hosts may not know yet that the last `muster run` has ended\n",
          local::kPatience.count());
    std::fflush(out);
    std::this_thread::sleep_for(local::kPatience);
  }
  if (hosts) reach_hosts(*hosts, copies, source, state, notes, out);
  if (!is_new) look_at_checkpoint(source, notes);
  if (source.job.all_devices)
    notes.push_back(fmt::format("{}: spec.training.devices: auto is {}",
                                source.document.locate("spec.training.devices"),
                                integer_or(source.job.training, "devices", 1)));

  const std::string mark = "MUSTER_JOB_UID=" + state.uid;
  Descriptor signals = watch_signals({SIGINT, SIGTERM, SIGHUP});
  const local::Guard guard(directory, lock, mark);
  const int leftovers = local::end_leftovers(directory, mark);
  local::drop_scale_request(directory);  // a request from an earlier run
  local::drop_checkpoint_request(directory);
  write_file_atomically(directory.manifest(), local::to_yaml(source.document.value()));

  const char* how = retries                  ? "retries"
                    : goes_on                ? "trains on"
                    : state.status.is_null() ? "runs"
                                             : "resumes";
  print(out, "{}: {} in {}\n", source.job.name, how, shown(directory.root()));
  if (leftovers > 0) print(out, "ended {} processes of an earlier run\n", leftovers);
  for (const std::string& note : notes) {
    if (!note.empty()) print(out, "note: {}\n", note);
  }
  std::fflush(out);
  return Run(std::move(source), std::move(state), options, std::move(signals)).run();
}

}  // namespace muster::cmd
