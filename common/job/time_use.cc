#include "common/job/time_use.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/documents/json.h"

namespace muster {

namespace {

constexpr auto kNames = std::to_array<TimeUseName>({
    {TimeUse::queued, "queued", "waiting in a queue, for a quota or for the rest of its gang"},
    {TimeUse::unschedulable, "unschedulable", "waiting for a node with room"},
    {TimeUse::pulling, "pulling", "pulling images and creating containers"},
    {TimeUse::starting, "starting", "starting processes"},
    {TimeUse::joining, "joining", "waiting until the group is complete"},
    {TimeUse::restoring, "restoring", "reading a checkpoint"},
    {TimeUse::computing, "computing", "computing steps that count"},
    {TimeUse::recomputing, "recomputing", "computing steps again that were lost"},
    {TimeUse::input, "input", "waiting for batches of data"},
    {TimeUse::communication, "communication", "exchanging gradients and parameters"},
    {TimeUse::slowest, "slowest", "waiting for the slowest member"},
    {TimeUse::checkpoint, "checkpoint", "copying the state for a checkpoint"},
    {TimeUse::storage, "storage", "waiting for storage that is full or does not answer"},
    {TimeUse::evaluating, "evaluating", "evaluating within the training"},
    {TimeUse::final_evaluation, "finalEvaluation", "evaluating the final state"},
    {TimeUse::exporting, "exporting", "writing the final checkpoint, the model and the results"},
    {TimeUse::lost, "lost", "replacing a replica or a node that was lost"},
    {TimeUse::suspended, "suspended", "suspended or preempted"},
    {TimeUse::hanging, "hanging", "without a sign of life"},
    {TimeUse::stopping, "stopping", "ending replicas"},
    {TimeUse::unknown, "unknown", "unknown, because no operator looked"},
});
static_assert(kNames.size() == static_cast<size_t>(TimeUse::unknown) + 1);

}  // namespace

std::span<const TimeUseName> time_uses() {
  return kNames;
}

const char* name_of(TimeUse use) {
  return kNames[static_cast<size_t>(use)].name;
}

std::optional<TimeUse> time_use_of(std::string_view name) {
  const auto found = std::ranges::find(kNames, name, &TimeUseName::name);
  if (found == kNames.end()) return std::nullopt;
  return found->use;
}

double TimeSpent::total() const {
  return std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
}

TimeSpent& TimeSpent::operator+=(const TimeSpent& more) {
  for (size_t i = 0; i < seconds_.size(); ++i) seconds_[i] += more.seconds_[i];
  return *this;
}

TimeSpent TimeSpent::operator*(double factor) const {
  TimeSpent product = *this;
  for (double& seconds : product.seconds_) seconds *= factor;
  return product;
}

TimeSpent TimeSpent::since(const TimeSpent& earlier) const {
  TimeSpent difference;
  for (size_t i = 0; i < seconds_.size(); ++i)
    difference.seconds_[i] = std::max(0.0, seconds_[i] - earlier.seconds_[i]);
  return difference;
}

Json TimeSpent::json() const {
  Json json = Json::object();
  for (const auto& [use, name, meaning] : kNames)
    if (const double seconds = std::round((*this)[use] * 1e3) / 1e3; seconds > 0)
      json[name] = seconds;
  return json;
}

TimeSpent TimeSpent::of(const Json& json) {
  constexpr double kMost = 1e10;  // three centuries
  TimeSpent spent;
  for (const auto& [use, name, meaning] : kNames) {
    const double seconds = number_or(json, name, 0);
    if (std::isfinite(seconds)) spent[use] = std::clamp(seconds, 0.0, kMost);
  }
  return spent;
}

}  // namespace muster
