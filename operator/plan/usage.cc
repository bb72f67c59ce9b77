#include "operator/plan/usage.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "common/documents/json.h"
#include "common/error.h"
#include "operator/api/overview.h"
#include "operator/api/status.h"
#include "operator/api/templates.h"
#include "operator/plan/job_ledger.h"

namespace muster::plan {
namespace {

constexpr const char* kUntil = "until";
constexpr const char* kWrite = "write";

double seconds(api::Time from, api::Time to) {
  return std::chrono::duration<double>(to - from).count();
}

// Whether the last operator that has looked at the job saw it wait without its GPUs.
bool has_waited(const api::TrainingJob& job) {
  const TimeUse use = use_in(job.status.goodput);
  return use == TimeUse::queued || use == TimeUse::suspended;
}

bool is_month(const std::string& text) {
  return text.size() == 7 && api::parse_time(text + "-01T00:00:00Z");
}

Usage to_usage(const Json& json, const std::string& where) {
  const auto refuse = [&](const char* expected, const Json& found) -> Invalid {
    return Invalid(where + ": expected " + expected + ", found " + found.dump());
  };
  if (!json.is_object()) throw refuse("an object", json);
  Usage usage;
  usage.spent = TimeSpent::of(member(json, "seconds"));
  usage.gpu_seconds = number_or(json, "gpuSeconds", 0);
  if (!std::isfinite(usage.gpu_seconds) || usage.gpu_seconds < 0)
    throw refuse("gpuSeconds from 0 on", member(json, "gpuSeconds"));
  for (const auto& [state, number] : member(json, "ended").items()) {
    if (!number.is_number_integer() || number.get<int64_t>() < 0)
      throw refuse("a number of jobs from 0 on", number);
    usage.ended[state] = number.get<int64_t>();
  }
  return usage;
}

Json to_json(const Usage& usage) {
  return {{"seconds", usage.spent.json()},
          {"gpuSeconds", std::round(usage.gpu_seconds * 1e3) / 1e3},
          {"ended", usage.ended}};
}

}  // namespace

void Usage::charge(const TimeSpent& more, int gpus) {
  spent += more;
  gpu_seconds += gpus * (more.total() - more[TimeUse::queued] - more[TimeUse::suspended]);
}

Usage& Usage::operator+=(const Usage& more) {
  spent += more.spent;
  gpu_seconds += more.gpu_seconds;
  for (const auto& [state, number] : more.ended) ended[state] += number;
  return *this;
}

Usage Usage::since(const Usage& earlier) const {
  Usage difference = *this;
  difference.spent += earlier.spent * -1;
  difference.gpu_seconds -= earlier.gpu_seconds;
  for (const auto& [state, number] : earlier.ended) difference.ended[state] -= number;
  std::erase_if(difference.ended, [](const auto& entry) { return entry.second == 0; });
  return difference;
}

std::string end_state(const api::JobStatus& status) {
  return api::state_word(status);
}

int gpus_of(const api::TrainingJob& job) {
  int gpus = 0;
  for (const auto& [role, spec] : job.replicas) {
    const auto group = job.status.group.find(role);
    const int replicas = group == job.status.group.end() ? spec.replicas : group->second;
    for (const Json& container : member(member(spec.pod_template, "spec"), "containers"))
      gpus += replicas * api::asked_gpus(container);
  }
  return gpus;
}

void count_gap(UsageByNamespace& usage, const api::TrainingJob& job, api::Time since,
               api::Time until, std::optional<api::Time> looked_until) {
  if (job.managed_by != api::kManagedByMuster) return;
  const std::optional<api::Time>& end = job.status.completion_time;
  const api::Time from = std::max(job.created.value_or(until), since);
  const api::Time to = std::min(end.value_or(until), until);
  if (to > from) {
    const api::Time seen = end ? from : std::clamp(looked_until.value_or(from), from, to);
    TimeSpent gap;
    gap[use_in(job.status.goodput)] += seconds(from, seen);
    gap[TimeUse::unknown] += seconds(seen, to);
    usage[job.name_space].charge(gap, has_waited(job) ? 0 : gpus_of(job));
  }
  if (end && *end > since && *end <= until) ++usage[job.name_space].ended[end_state(job.status)];
}

std::string month_of(api::Time time) {
  return api::format_time(time).substr(0, 7);
}

UsageTotals UsageTotals::of(const Json& data) {
  UsageTotals totals;
  for (const auto& [key, value] : data.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    const std::string where = "data." + key;
    if (key == kUntil) {
      totals.until = api::parse_time(text);
      if (!totals.until) throw Invalid(where + ": expected a time, found \"" + text + "\"");
    } else if (key == kWrite) {
      totals.write = text;
    } else if (is_month(key)) {
      const Json month = parse_or_null(text);
      if (!month.is_object())
        throw Invalid(where + ": expected a JSON object of namespaces, found " +
                      std::to_string(text.size()) + " bytes that are none");
      for (const auto& [name_space, usage] : month.items())
        totals.months_[key][name_space] = to_usage(usage, where + "." + name_space);
    }
  }
  return totals;
}

Json UsageTotals::data() const {
  Json data = Json::object();
  for (const auto& [month, namespaces] : months_) {
    Json json = Json::object();
    for (const auto& [name_space, usage] : namespaces) json[name_space] = to_json(usage);
    data[month] = json.dump();
  }
  if (until) data[kUntil] = api::format_time(*until);
  if (!write.empty()) data[kWrite] = write;
  return data;
}

// A use that has less than nothing in this month was counted at the end of the month before.
void UsageTotals::carry_back(const std::string& month, const std::string& name_space) {
  const auto now = months_.find(month);
  for (const TimeUseName& use : time_uses()) {
    const double missing = std::min(0.0, now->second[name_space].spent[use.use]);
    if (missing == 0) continue;
    now->second[name_space].spent[use.use] = 0;
    if (now == months_.begin()) continue;
    double& before = std::prev(now)->second[name_space].spent[use.use];
    before = std::max(0.0, before + missing);
  }
}

void UsageTotals::add(const std::string& month, const UsageByNamespace& more) {
  UsageByNamespace& now = months_[month];
  for (const auto& [name_space, usage] : more) {
    if (usage == Usage()) continue;
    const bool has_room = now.size() < kMostNamespaces || now.contains(name_space);
    const std::string name = has_room ? name_space : kOther;
    Usage& sum = now[name];
    sum += usage;
    sum.gpu_seconds = std::max(0.0, sum.gpu_seconds);
    carry_back(month, name);
  }
  while (months_.size() > kMostMonths) months_.erase(months_.begin());
}

}  // namespace muster::plan
