#include "trainer/loop/evaluation/stop_rule.h"

#include <fmt/format.h>

#include <chrono>

#include "common/json.h"
#include "common/json_file.h"
#include "common/log.h"
#include "common/pause.h"
#include "common/whole_number.h"
#include "trainer/loop/batches/stopping.h"
#include "trainer/spec/metric.h"

namespace muster::loop {

namespace {

constexpr std::chrono::milliseconds kLook{1000};

// Returns the step of evaluations/<step>.json.
std::optional<uint64_t> parse_step(const std::filesystem::path& file) {
  return whole_number<uint64_t>(file.stem().string());
}

// Returns a time before all others if the file is gone.
std::filesystem::file_time_type written_at(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::last_write_time(file, error);
}

}  // namespace

std::optional<checkpoint::Best> reached_by(const Json& evaluation, const spec::TrainingSpec& spec) {
  const std::string metric = spec::metric_of(spec.model.loss, spec.stop_when->metric).name;
  const Json& value = member(member(evaluation, "validation"), metric.c_str());
  if (!value.is_number() || !spec.stop_when->is_reached_by(value.get<double>()))
    return std::nullopt;
  checkpoint::Best reached;
  reached.value = value.get<double>();
  reached.step = static_cast<uint64_t>(integer_or(evaluation, "step", 0));
  return reached;
}

StopRule::StopRule(const spec::TrainingSpec& spec, const std::filesystem::path& storage)
    : spec_(spec), evaluations_(storage.empty() ? storage : storage / "evaluations") {}

void StopRule::begin(const checkpoint::Position& position) {
  epoch_ = 0;
  if (evaluations_.empty()) return;
  {
    const MutexLock lock(mutex_);
    for (const auto& file : evaluations_there()) {
      if (parse_step(file).value_or(0) <= position.step) continue;
      seen_.erase(file);
      old_[file] = written_at(file);
    }
  }
  if (!thread_.joinable()) thread_ = std::jthread([this](std::stop_token stop) { watch(stop); });
}

void StopRule::apply(Synchronizer& synchronizer) {
  const checkpoint::Position& position = synchronizer.position();
  std::optional<checkpoint::Best> reached;
  if (is_reached_) {
    const MutexLock lock(mutex_);
    reached = reached_;
    reached->epoch = position.epoch;
  } else if (position.epoch > epoch_) {
    epoch_ = position.epoch;
    reached = reached_by_training(position, spec_);
  }
  if (!reached || position.evaluations.reached) return;
  checkpoint::Evaluations evaluations = position.evaluations;
  evaluations.reached = reached;
  tell_reached(*reached, *spec_.stop_when);
  synchronizer.evaluated(evaluations);
}

void StopRule::watch(std::stop_token stop) {
  while (!stop.stop_requested() && !is_reached_) {
    look();
    pause_for(kLook, stop);
  }
}

std::vector<std::filesystem::path> StopRule::evaluations_there() const {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(evaluations_, error), end; !error && at != end;
       at.increment(error))
    if (at->path().extension() == ".json") files.push_back(at->path());
  return files;
}

// An evaluation without objects has no precision, for instance.
void StopRule::warn_without_metric(const Json& evaluation) {
  const std::string metric = spec::metric_of(spec_.model.loss, spec_.stop_when->metric).name;
  const Json& validation = member(evaluation, "validation");
  if (!validation.is_object() || validation.contains(metric) || warned_) return;
  warned_ = true;
  log::warning(
      fmt::format("stopWhen: the evaluation of step {} has no {}, so that it cannot end the "
                  "training",
                  integer_or(evaluation, "step", 0), spec_.stop_when->metric));
}

// A file that cannot be read now is read the next time.
void StopRule::look() {
  const MutexLock lock(mutex_);
  for (const auto& file : evaluations_there()) {
    if (seen_.contains(file)) continue;
    const auto old = old_.find(file);
    if (old != old_.end() && old->second == written_at(file)) continue;
    const Json evaluation = read_json_or_null(file);
    if (evaluation.is_null()) continue;
    seen_.insert(file);
    warn_without_metric(evaluation);
    const auto reached = reached_by(evaluation, spec_);
    if (!reached) continue;
    reached_ = reached;
    is_reached_ = true;
    return;
  }
}

}  // namespace muster::loop
