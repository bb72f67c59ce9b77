#include "common/job/time_use.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/documents/json.h"

namespace muster {

namespace {

constexpr auto kNames = std::to_array<TimeUseName>({
    {TimeUse::queued, "queued"},
    {TimeUse::unschedulable, "unschedulable"},
    {TimeUse::pulling, "pulling"},
    {TimeUse::starting, "starting"},
    {TimeUse::joining, "joining"},
    {TimeUse::restoring, "restoring"},
    {TimeUse::computing, "computing"},
    {TimeUse::recomputing, "recomputing"},
    {TimeUse::input, "input"},
    {TimeUse::communication, "communication"},
    {TimeUse::slowest, "slowest"},
    {TimeUse::checkpoint, "checkpoint"},
    {TimeUse::storage, "storage"},
    {TimeUse::evaluating, "evaluating"},
    {TimeUse::final_evaluation, "finalEvaluation"},
    {TimeUse::exporting, "exporting"},
    {TimeUse::lost, "lost"},
    {TimeUse::suspended, "suspended"},
    {TimeUse::hanging, "hanging"},
    {TimeUse::stopping, "stopping"},
    {TimeUse::unknown, "unknown"},
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
  for (const auto& [use, name] : kNames)
    if (const double seconds = std::round((*this)[use] * 1e3) / 1e3; seconds > 0)
      json[name] = seconds;
  return json;
}

TimeSpent TimeSpent::of(const Json& json) {
  constexpr double kMost = 1e10;  // three centuries
  TimeSpent spent;
  for (const auto& [use, name] : kNames) {
    const double seconds = number_or(json, name, 0);
    if (std::isfinite(seconds)) spent[use] = std::clamp(seconds, 0.0, kMost);
  }
  return spent;
}

}  // namespace muster
