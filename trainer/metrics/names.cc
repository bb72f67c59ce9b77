#include "trainer/metrics/names.h"

#include <algorithm>
#include <array>
#include <utility>

namespace muster::metrics {
namespace {

constexpr std::string_view kPrefix = "muster_trainer_";

constexpr auto kHelp = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"step", "Committed global steps."},
    {"total_steps", "Global steps the job will make; 0 while unknown."},
    {"epoch", "Complete passes over the data."},
    {"loss", "Mean training loss of the last report."},
    {"metric", "The last evaluation's metrics, by name."},
    {"examples_per_second", "Examples trained on by the whole group each second."},
    {"gpu_utilization",
     "Share of the last second or less in which a kernel ran on the GPU: 0 to 1."},
    {"gpu_memory_used_bytes", "Memory of the GPU that all processes together use."},
    {"gpu_memory_bytes", "Memory of the GPU."},
    {"gpu_power_watts", "Power that the GPU draws."},
    {"gpu_memory_errors", "Uncorrected errors of the GPU's memory since its driver was loaded."},
    {"input_wait_seconds_total", "Seconds that training waited for batches of its data."},
    {"eta_seconds", "Seconds until the last step at the present rate; -1 while unknown."},
    {"last_checkpoint_step", "Step of the last checkpoint published."},
    {"last_checkpoint_timestamp_seconds",
     "Unix time at which the last checkpoint was published; 0 before the first."},
    {"goodput", "Share of the time since the first start that went into committed steps."},
    {"time_seconds_total", "Seconds that this process has spent, by use."},
    {"generation", "Generation of the group."},
    {"restarts", "Restarts of this replica in place, in this container."},
    {"stalled_seconds",
     "Seconds since stalled work last gave a sign of life; 0: no work is stalled."},
    {"state", "1 for the state the replica is in."},
    {"step_seconds", "Seconds from one committed step to the next."},
    {"checkpoint_seconds", "Seconds from the start of writing a checkpoint to its publication."},
    {"checkpoints_total", "Checkpoints published."},
    {"checkpoints_failed_total", "Checkpoints that could not be written."},
    {"commits_total", "Updates applied."},
    {"shards_serving", "Shards of parameters that this ps serves."},
    {"shards_replicated", "Served shards with a whole second copy on another ps."},
    {"second_copies", "Shards of other ps of which this ps holds a whole second copy."},
    {"pushes_stale_total", "Gradient pushes not applied: for an earlier step."},
    {"pushes_duplicate_total", "Gradient pushes not applied: seen before."},
    {"pushes_conflicting_total", "Gradient pushes not applied: seen before, with other content."},
    {"pushes_superseded_total", "Gradient pushes not applied: from another generation."},
    {"members_left_out_total",
     "Members whose gradients a step was committed without (backup workers)."},
    {"members_held_back_total",
     "Members that had to wait for work because they were too far ahead of the slowest."},
    {"staleness_total",
     "Updates between a push's parameters and its application, summed over all pushes."},
    {"staleness_max", "Largest number of updates between a push's parameters and its application."},
});

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

std::string metric_name(std::string_view name, std::string_view ending) {
  std::string out(kPrefix);
  out += name;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !is_plain(c); }, '_');
  if (!out.ends_with(ending)) out += ending;
  return out;
}

std::string help_of(const std::string& full_name) {
  const std::string_view name = std::string_view(full_name).substr(kPrefix.size());
  const auto* found = std::find_if(kHelp.begin(), kHelp.end(),
                                   [&](const auto& entry) { return entry.first == name; });
  return std::string(found == kHelp.end() ? name : found->second);
}

}  // namespace muster::metrics
