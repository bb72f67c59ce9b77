#include "operator/cmd/local/run_loop.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <set>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "common/system/file.h"
#include "common/system/signals.h"
#include "operator/cmd/job/results.h"
#include "operator/cmd/job/resume.h"
#include "operator/cmd/job/scale.h"
#include "operator/cmd/show/display.h"
#include "operator/cmd/show/summary.h"
#include "operator/cmd/show/summary_text.h"
#include "operator/cmd/show/warnings.h"
#include "operator/controller/controller.h"
#include "operator/local/local_cluster.h"
#include "operator/local/scale_request.h"

namespace muster::cmd {

namespace {

using local::JobDirectory;
using local::JobState;

// Shortest time between two writes of progress.
constexpr auto kStatusPeriod = std::chrono::seconds(1);
constexpr auto kLogPeriod = std::chrono::milliseconds(500);
constexpr auto kRemind = std::chrono::seconds(30);  // time between reminders of a repeated failure

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

}  // namespace

int run_to_the_end(JobSource source, JobState state, const RunOptions& options,
                   Descriptor signals) {
  return Run(std::move(source), std::move(state), options, std::move(signals)).run();
}

}  // namespace muster::cmd
