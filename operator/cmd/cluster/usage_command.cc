#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/documents/json.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "operator/api/status.h"
#include "operator/cmd/cluster/cluster_commands.h"
#include "operator/cmd/show/display.h"
#include "operator/plan/usage.h"

namespace muster::cmd {

namespace {

using Months = std::map<std::string, plan::UsageByNamespace>;

plan::UsageTotals totals_of(const ClusterAccess& cluster, const std::string& name) {
  const std::string object = "ConfigMap " + cluster.name_space() + "/" + name;
  const auto found = cluster.client().get(kube::config_maps(), {cluster.name_space(), name});
  if (!found)
    throw Invalid(object +
                  ": expected what the operator's leader writes every five minutes, found no such "
                  "ConfigMap: --namespace is the operator's namespace");
  try {
    return plan::UsageTotals::of(member(*found, "data"));
  } catch (const Invalid& error) {
    throw Invalid(object + ": " + error.what());
  }
}

// Returns the months that the user wants to see.
Months wanted(const plan::UsageTotals& totals, const std::string& month) {
  const Months& all = totals.months();
  if (month.empty()) return all;
  const auto found = all.find(month);
  if (found != all.end()) return {*found};
  std::string there;
  for (const auto& [name, namespaces] : all) there += (there.empty() ? "" : ", ") + name;
  throw Invalid("--month: expected one of the months that are kept (" +
                (there.empty() ? "none yet" : there) + "), found " + month);
}

int64_t jobs_of(const plan::Usage& usage, const std::string& state) {
  const auto found = usage.ended.find(state);
  return found == usage.ended.end() ? 0 : found->second;
}

Json to_json(const plan::UsageTotals& totals, const Months& months) {
  Json json = {{"until", nullptr}, {"months", Json::object()}};
  if (totals.until) json["until"] = api::format_time(*totals.until);
  for (const auto& [month, namespaces] : months) {
    Json& shown = json["months"][month] = Json::object();
    for (const auto& [name_space, usage] : namespaces) {
      const auto share = plan::share_of_steps(usage.spent);
      shown[name_space] = {{"jobs", usage.ended},
                           {"seconds", usage.spent.json()},
                           {"gpuSeconds", usage.gpu_seconds},
                           {"goodput", share ? Json(*share) : Json()}};
    }
  }
  return json;
}

constexpr double kHour = 3600;

std::string row(const std::string& name, const plan::Usage& usage) {
  const auto share = plan::share_of_steps(usage.spent);
  const double waited = usage.spent[TimeUse::queued] + usage.spent[TimeUse::suspended];
  return fmt::format("{:<24} {:>9} {:>7} {:>8} {:>10.1f} {:>10.1f} {:>10.1f} {:>8}\n", name,
                     jobs_of(usage, "Succeeded"), jobs_of(usage, "Failed"),
                     jobs_of(usage, plan::kDeleted), waited / kHour,
                     (usage.spent.total() - waited) / kHour, usage.gpu_seconds / kHour,
                     share ? fmt::format("{:.1f} %", *share * 100) : "-");
}

std::string table(const std::string& month, const plan::UsageByNamespace& namespaces) {
  std::string text =
      fmt::format("{}\n{:<24} {:>9} {:>7} {:>8} {:>10} {:>10} {:>10} {:>8}\n", month, "NAMESPACE",
                  "SUCCEEDED", "FAILED", "DELETED", "WAITED h", "JOBS h", "GPUS h", "GOODPUT");
  plan::Usage sum;
  for (const auto& [name_space, usage] : namespaces) {
    text += row(name_space, usage);
    sum += usage;
  }
  return text + row("all", sum);
}

}  // namespace

int show_usage(const ClusterAccess& cluster, const UsageOptions& options) {
  const plan::UsageTotals totals = totals_of(cluster, options.name);
  const Months months = wanted(totals, options.month);
  if (options.output != "text") {
    print_value(to_json(totals, months), options.output);
    return kSuccess;
  }
  for (const auto& [month, namespaces] : months) print(stdout, "{}\n", table(month, namespaces));
  if (totals.until) print(stdout, "until {}\n", api::format_time(*totals.until));
  return kSuccess;
}

}  // namespace muster::cmd
