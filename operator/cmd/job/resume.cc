#include "operator/cmd/job/resume.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "common/text/shell_word.h"
#include "operator/api/schema.h"
#include "operator/cmd/job/initial_weights.h"
#include "trainer/checkpoint/start/completion.h"
#include "trainer/checkpoint/start/resume.h"
#include "trainer/folder/claim.h"
#include "trainer/spec/convert.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainingPath = "spec.training";

checkpoint::Resumption resumption_from(const checkpoint::Store::Found& found,
                                       const api::TrainingJob& job) {
  return checkpoint::resume(found.manifest, job.training, job.replicas.contains(api::Role::ps));
}

// Returns the end of the sentence about a retry: what must change before it can succeed.
const char* to_be_mended(int exit_code) {
  switch (exit_code) {
    case kCannotWrite:
      return " once there is room and it can be written";
    case kUnavailable:
      return " once what was unavailable is back";
    case kDiverged:
      return " with a smaller learning rate, for as it is it diverges again";
    case kDeadline:
      return " for its activeDeadlineSeconds once more";
    default:
      return is_permanent(exit_code) ? " once that is mended" : "";
  }
}

}  // namespace

checkpoint::Store::Search search_checkpoints(const local::JobDirectory& directory) {
  return checkpoint::Store(directory.root() / "checkpoints", 1).search();
}

namespace {

// Returns the manifest that the directory was last run with; nothing if it never was.
std::optional<Document> last_run(const JobSource& source) {
  const fs::path manifest = source.setting.directory.manifest();
  if (!is_there(manifest)) return std::nullopt;
  Document before = Document::load(manifest);
  apply_schema(api::training_job_schema(),
               before);  // fills in defaults of fields newer than that manifest
  return before;
}

// Returns the `training` block that was last in use, whatever the manifest says now.
Json last_training(const JobSource& source) {
  const auto before = last_run(source);
  return before ? member(member(before->value(), "spec"), "training") : source.job.training;
}

// Returns the setting that makes every step's learning rate a tenth of what it was.
std::string smaller_rate(const Json& training) {
  const Json& values =
      member(member(member(training, "learningRateSchedule"), "piecewise"), "values");
  if (!values.is_array()) {
    const double rate = number_or(member(training, "optimizer"), "learningRate", 0.001);
    return fmt::format("{}.optimizer.learningRate={:g}", kTrainingPath, rate / 10);
  }
  std::vector<std::string> smaller;
  for (const Json& value : values) smaller.push_back(fmt::format("{:g}", value.get<double>() / 10));
  return fmt::format("{}.learningRateSchedule.piecewise.values=[{}]", kTrainingPath,
                     fmt::join(smaller, ", "));
}

// Returns the beginning of a sentence that says where a retry of a training job would continue
// from.
std::string where_from(const local::JobDirectory& directory) {
  try {
    const auto search = search_checkpoints(directory);
    const auto& found = search.or_refuse();
    if (!found) return "There is no checkpoint. To begin again";
    return fmt::format("To go on from {} (step {})", found->directory.filename().string(),
                       found->manifest.position.step);
  } catch (const Unavailable& error) {
    return fmt::format("A retry needs the checkpoints, and they cannot be read: {}. To go on",
                       error.what());
  } catch (const Invalid& error) {
    return std::string(error.what()) + ". Then, to go on";
  }
}

}  // namespace

std::vector<spec::Change> changes_since_last_run(const JobSource& source) {
  const auto before = last_run(source);
  if (!before) return {};
  return spec::changes(before->value(), source.document.value());
}

namespace {

// Checks a job without a checkpoint, and returns notes for the user.
std::vector<std::string> check_beginning(const JobSource& source) {
  std::vector<std::string> notes;
  if (!source.job.status.conditions.empty()) {  // the job was run before
    notes.push_back(fmt::format("there is no checkpoint in {}: training begins again at step 0",
                                shown(source.setting.directory.root() / "checkpoints")));
  }
  if (!starts_replicas(source.job)) return notes;
  if (std::string note = check_initial_weights(source); !note.empty()) notes.push_back(note);
  return notes;
}

}  // namespace

namespace {

// The trainer checks the same, and also whether the same number of replicas compute a step.
void require_own_folder(const JobSource& source) {
  const fs::path& root = source.setting.directory.root();
  const auto owner = folder::read_owner(root);
  if (!owner) return;
  folder::Owner job = *owner;
  job.name_space = "";
  job.job = source.job.name;
  job.uid = source.job.uid;
  job.training = source.job.training;
  const std::string why = folder::obstacle(root, *owner, job, source.job.storage_adopt);
  if (!why.empty()) throw Invalid(why, kProtocol);
}

}  // namespace

namespace {

// How long a training is at a position, and how long the manifest asks for, in the manifest's unit.
struct Lengths {
  Lengths(const checkpoint::Position& position, const spec::TrainingSpec& spec)
      : unit(spec.steps ? "step" : "epoch"),
        trained(text_of(spec.steps ? position.step : position.epoch)),
        asked_for(text_of(spec.steps.value_or(spec.epochs.value_or(0)))) {}

  std::string text_of(uint64_t count) const {
    return fmt::format("{} {}{}", count, unit, count == 1 ? "" : "s");
  }

  std::string unit;
  std::string trained;
  std::string asked_for;
};

}  // namespace

std::string nothing_to_train(const JobSource& source) {
  const auto found = search_checkpoints(source.setting.directory).newest;
  if (!found) return "";
  const api::TrainingJob& job = source.job;
  const checkpoint::Completion completion(job.training, job.replicas.contains(api::Role::ps));
  if (!completion.covers(found->manifest)) return "";
  const spec::TrainingSpec spec = spec::to_training_spec(job.training);
  const checkpoint::Position at = resumption_from(*found, job).position;
  const Lengths lengths(at, spec);
  if (const auto& reached = at.evaluations.reached) {
    return fmt::format(
        "expected something left to train, found that stopWhen has ended the training at step {}: "
        "{} was {:.6g}. To train on, change or remove {}.stopWhen; more {}s alone change nothing",
        reached->step, spec.stop_when->metric, reached->value, kTrainingPath, lengths.unit);
  }
  if (checkpoint::is_stopped(at.evaluations, spec.early_stopping)) {
    return fmt::format(
        "expected something left to train, found that early stopping has ended the training after "
        "epoch {}, at step {}: {} had not improved for {} evaluations. To train on, raise "
        "{}.earlyStopping.patience or remove earlyStopping; more {}s alone change nothing",
        at.epoch, at.step, spec.early_stopping->metric, at.evaluations.without_improvement,
        kTrainingPath, lengths.unit);
  }
  return fmt::format("expected more {}s than the {} that the job has been trained for, found {}",
                     lengths.unit, lengths.trained, lengths.asked_for);
}

std::vector<std::string> check_resume(const JobSource& source) {
  if (source.job.training.is_null()) return {};
  require_own_folder(source);
  const auto search = search_checkpoints(source.setting.directory);
  const auto& found = search.or_refuse();
  if (!found) return check_beginning(source);
  const std::string name = found->directory.filename().string();
  const checkpoint::Resumption resumption = resumption_from(*found, source.job);
  const auto where = [&](const std::string& path) { return source.document.locate(path); };
  require_no_problems(checkpoint::problems_of(resumption, name, kTrainingPath, where), kBadInput);
  std::vector<std::string> notes;
  const spec::TrainingSpec spec = spec::to_training_spec(source.job.training);
  if (!found->manifest.is_final() && checkpoint::is_whole(resumption.position, spec)) {
    const Lengths lengths(resumption.position, spec);
    notes.push_back(
        fmt::format("{} has been trained for {}, and {} asks for {}: nothing is left "
                    "to train",
                    name, lengths.trained, kTrainingPath, lengths.asked_for));
  }
  for (const spec::Change& change : resumption.changed) {
    const std::string path = std::string(kTrainingPath) + "." + change.path;
    notes.push_back(fmt::format("{}: {} {} since {}; the rest is trained with it", where(path),
                                path, change.text(), name));
  }
  return notes;
}

std::string retry_warning(const JobSource& source, int exit_code) {
  if (exit_code != kDiverged) return "";
  const auto changed = changes_since_last_run(source);
  const bool same = std::ranges::none_of(
      changed, [](const spec::Change& change) { return change.path.starts_with(kTrainingPath); });
  return same ? "spec.training is as it was when the loss became not finite: it is likely to "
                "diverge again at the same step"
              : "";
}

namespace {

// Whether the manifest has changed settings of the optimizer other than optimizer.learningRate
// since the run that diverged. If so, the learning rate of that run says nothing about the new
// settings.
bool updates_otherwise(const JobSource& source) {
  const auto changed = changes_since_last_run(source);
  return std::ranges::any_of(changed, [](const spec::Change& change) {
    const std::string rate = std::string(kTrainingPath) + ".optimizer.learningRate";
    const bool below =
        change.path.starts_with(std::string(kTrainingPath) + ".optimizer.") ||
        change.path.starts_with(std::string(kTrainingPath) + ".learningRateSchedule");
    return below && change.path != rate;
  });
}

}  // namespace

std::string how_to_retry(const JobSource& source, const RunOptions& options, int exit_code) {
  const bool trains = !source.job.training.is_null();
  const std::string what = trains ? where_from(source.setting.directory) : "To begin again";
  RunOptions mended = options;
  std::vector<std::string> more;
  const bool changed = exit_code == kDiverged && updates_otherwise(source);
  if (exit_code == kDiverged && !changed) {
    const std::string smaller = smaller_rate(last_training(source));
    const std::string field = smaller.substr(0, smaller.find('=') + 1);
    std::erase_if(mended.sets, [&](const std::string& set) { return set.starts_with(field); });
    more = {"--set", smaller};
  }
  more.push_back("--retry");
  return what + (changed ? " with the optimizer as it is now" : to_be_mended(exit_code)) + ": " +
         run_command(mended, source.setting.directory, more);
}

std::string run_command(const RunOptions& options, const local::JobDirectory& directory,
                        const std::vector<std::string>& more) {
  std::string text = "muster run " + shell_word(options.manifest.string());
  for (const std::string& set : options.sets) text += " --set " + shell_word(set);
  if (!options.hosts.empty()) text += " --hosts " + shell_word(options.hosts.string());
  text += " --directory " + shell_word(shown(directory.root()));
  for (const std::string& word : more) text += " " + shell_word(word);
  return text;
}

}  // namespace muster::cmd
