#include "operator/cmd/local/earlier_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "common/random.h"
#include "common/system/process.h"
#include "operator/api/status.h"
#include "operator/cmd/job/results.h"
#include "operator/cmd/job/resume.h"
#include "operator/cmd/show/summary.h"
#include "operator/cmd/show/summary_text.h"
#include "operator/plan/retry.h"

namespace muster::cmd {

namespace {

using local::JobDirectory;
using local::JobState;

constexpr size_t kMostChanges = 5;  // most changes that are named

// Returns a random (version 4) UUID.
std::string new_uid() {
  const uint64_t high = (random_number() & ~0xf000ULL) | 0x4000ULL;
  const uint64_t low = (random_number() >> 2) | 0x8000000000000000ULL;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffffULL);
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

}  // namespace

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

const char* follow_wishes(JobSource& source, JobState& state, const RunOptions& options,
                          std::vector<std::string>& notes) {
  const bool retries = options.retry && source.job.status.is_true("FailureTarget");
  if (retries) {
    notes.push_back(retry_warning(source, exit_code_of(source.job, state.replicas, Json())));
    source.job.status = plan::retry(source.job);
  }
  const bool goes_on = trains_on(source, options);
  if (goes_on) source.job.status = plan::train_on(source.job);
  const bool is_first = state.status.is_null();
  if (retries || goes_on) state.status = api::to_json(source.job.status);
  return retries ? "retries" : goes_on ? "trains on" : is_first ? "runs" : "resumes";
}

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

bool may_live_unseen(const api::TrainingJob& job, const JobState& state,
                     const std::optional<local::ProcessIdentity>& last) {
  const auto self = local::ProcessIdentity::of(::getpid());
  const bool another_boot = !last || !self || last->boot != self->boot;
  return another_boot && job.training.is_null() && !state.addresses.hosts.empty() &&
         std::ranges::any_of(state.replicas, plan::is_live);
}

}  // namespace muster::cmd
