#include "trainer/metrics/progress.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>

#include "common/job/metric_name.h"

namespace muster::metrics {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{:.6g}", value);
}

std::string rfc3339(double unix_seconds) {
  // Limits the time to the year 9999, as in RFC 3339.
  const double seconds = std::clamp(unix_seconds, 0.0, 253402300799.0);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

double six_digits(double value) {
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

void set_if_finite(Json& json, const char* name, double value) {
  if (std::isfinite(value)) json[name] = value;
}

}  // namespace

Json Progress::json(const std::string& role, int index) const {
  Json json = {{"role", role},  {"index", index},          {"state", state},
               {"step", step},  {"stepsHere", steps_here}, {"totalSteps", total_steps},
               {"epoch", epoch}};
  if (loss) json["loss"] = number_text(*loss);
  json["metrics"] = Json::object();
  std::map<std::string, double> metrics = training;
  metrics.insert(group.begin(), group.end());
  for (const auto& [name, value] : validation) metrics[metric_field("validation", name)] = value;
  for (const auto& [name, value] : metrics) set_if_finite(json["metrics"], name.c_str(), value);
  set_if_finite(json, "examplesPerSecond", six_digits(examples_per_second));
  set_if_finite(json, "inputWaitSeconds", six_digits(input_wait_seconds));
  if (eta_seconds >= 0) set_if_finite(json, "etaSeconds", six_digits(eta_seconds));
  if (last_checkpoint_time > 0) {
    json["lastCheckpointStep"] = last_checkpoint_step;
    json["lastCheckpointTime"] = rfc3339(last_checkpoint_time);
  }
  set_if_finite(json, "goodput", goodput);
  json["generation"] = generation;
  return json;
}

Json stalled_json(const std::string& replica, const std::string& doing, double since,
                  bool storage) {
  return {{"replica", replica}, {"doing", doing}, {"since", rfc3339(since)}, {"storage", storage}};
}

}  // namespace muster::metrics
