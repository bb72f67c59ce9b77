#include "trainer/metrics/names.h"

#include <algorithm>
#include <array>

#include "trainer/metrics/step_parts.h"

namespace muster::metrics {
namespace {

constexpr std::string_view kPrefix = "muster_trainer_";

constexpr unsigned kTrains = kChief | kWorker;  // who takes steps
// Who may lead a group; a worker only where there is no chief, which worker 0 cannot know.
constexpr unsigned kLeads = kChief | kFirstWorker;
constexpr unsigned kAll = kTrains | kPs | kEvaluator;
constexpr unsigned kLater = 0;  // appears with its first value: before it, a 0 would be wrong

constexpr std::string_view kStates[] = {"starting", "waiting",   "training", "evaluating",
                                        "serving",  "finishing", "done"};

constexpr auto kMetrics = std::to_array<Description>({
    {"step", Kind::gauge, kAll, "Committed global steps."},
    {"total_steps", Kind::gauge, kAll, "Global steps the job will make; 0 while unknown."},
    {"epoch", Kind::gauge, kAll, "Complete passes over the data."},
    {"loss", Kind::gauge, kLater, "Mean training loss of the last report."},
    {"training_metric", Kind::gauge, kLater,
     "Other measures of the batches of the last report, such as accuracy, by name."},
    {"validation_loss", Kind::gauge, kLater, "Loss of the newest evaluation on validation data."},
    {"validation_metric", Kind::gauge, kLater,
     "Other results of the newest evaluation on validation data, such as accuracy, by name."},
    {"validation_step", Kind::gauge, kLater, "Step whose weights were evaluated last."},
    {"examples_per_second", Kind::gauge, kAll,
     "Examples trained on by the whole group each second."},
    {"gpu_utilization", Kind::gauge, kLater,
     "Share of the last second or less in which a kernel ran on the GPU: 0 to 1."},
    {"gpu_memory_used_bytes", Kind::gauge, kLater,
     "Memory of the GPU that all processes together use."},
    {"gpu_memory_bytes", Kind::gauge, kLater, "Memory of the GPU."},
    {"gpu_power_watts", Kind::gauge, kLater, "Power that the GPU draws."},
    {"gpu_memory_errors", Kind::gauge, kLater,
     "Uncorrected errors of the GPU's memory since its driver was loaded."},
    {"gpu_temperature_celsius", Kind::gauge, kLater, "Temperature of the GPU."},
    {"gpu_clock_hertz", Kind::gauge, kLater, "Present clock of the GPU's processors."},
    {"gpu_xid_errors", Kind::gauge, kLater,
     "Errors (Xid) that the GPU's driver has reported since this process began."},
    {"gpu_last_xid", Kind::gauge, kLater, "Number (Xid) of the newest of these errors; 0: none."},
    {"input_wait_seconds_total", Kind::counter, kTrains,
     "Seconds that training waited for batches of its data."},
    {"eta_seconds", Kind::gauge, kAll,
     "Seconds until the last step at the present rate; -1 while unknown."},
    {"last_checkpoint_step", Kind::gauge, kAll, "Step of the last checkpoint published."},
    {"last_checkpoint_timestamp_seconds", Kind::gauge, kAll,
     "Unix time at which the last checkpoint was published; 0 before the first."},
    {"goodput", Kind::gauge, kAll,
     "Share of the time since the first start that went into committed steps."},
    {"time_seconds_total", Kind::counter, kLater, "Seconds that this process has spent, by use."},
    {"generation", Kind::gauge, kAll, "Generation of the group."},
    {"restarts", Kind::gauge, kAll, "Restarts of this replica in place, in this container."},
    {"stalled_seconds", Kind::gauge, kAll,
     "Seconds since stalled work last gave a sign of life; 0: no work is stalled."},
    {"state", Kind::gauge, kAll, "1 for the state the replica is in, 0 for all others.", "state",
     kStates},
    {"step_seconds", Kind::histogram, kTrains, "Seconds from one committed step to the next."},
    {"step_part_seconds", Kind::histogram, kTrains,
     "Seconds of a step that went into one part of it, over the steps that have the part.", "part",
     StepParts::kNames},
    {"checkpoint_seconds", Kind::histogram, kLeads,
     "Seconds from the start of writing a checkpoint to its publication."},
    {"checkpoints_total", Kind::counter, kLeads, "Checkpoints published."},
    {"checkpoints_failed_total", Kind::counter, kLeads, "Checkpoints that could not be written."},
    {"exchanged_bytes_total", Kind::counter, kTrains,
     "Bytes of gradients and parameters exchanged with ps, or by TCP with other members."},
    {"ps_bytes_total", Kind::counter, kLater,
     "Bytes of gradients and parameters that rank 0 has exchanged, by ps."},
    {"ps_answers_total", Kind::counter, kLater, "Answers that rank 0 has waited for, by ps."},
    {"ps_seconds_total", Kind::counter, kLater,
     "Seconds from asking to the answer, over all these answers, by ps."},
    {"commits_total", Kind::counter, kPs, "Updates applied."},
    {"shards_serving", Kind::gauge, kPs, "Shards of parameters that this ps serves."},
    {"shards_replicated", Kind::gauge, kPs,
     "Served shards with a whole second copy on another ps."},
    {"second_copies", Kind::gauge, kPs,
     "Shards of other ps of which this ps holds a whole second copy."},
    {"states_differing_total", Kind::counter, kLeads | kPs,
     "Times that two replicas which ought to hold the same state did not."},
    {"pushes_stale_total", Kind::counter, kPs, "Gradient pushes not applied: for an earlier step."},
    {"pushes_duplicate_total", Kind::counter, kPs, "Gradient pushes not applied: seen before."},
    {"pushes_conflicting_total", Kind::counter, kPs,
     "Gradient pushes not applied: seen before, with other content."},
    {"pushes_superseded_total", Kind::counter, kPs,
     "Gradient pushes not applied: from another generation."},
    {"members_left_out_total", Kind::counter, kPs,
     "Members whose gradients a step was committed without (backup workers)."},
    {"members_held_back_total", Kind::counter, kPs,
     "Members that had to wait for work because they were too far ahead of the slowest."},
    {.name = "staleness",
     .kind = Kind::histogram,
     .from_the_start = kPs,
     .help = "Updates between a push's parameters and its application.",
     .bounds = kStalenessBounds},
    {"group_staleness", Kind::gauge, kLater,
     "Mean updates between a push's parameters and its application at shard 0."},
    {"group_left_out", Kind::gauge, kLater,
     "Members that steps were committed without at shard 0."},
    {"group_shards_replicated", Kind::gauge, kLater,
     "Shards of the group with a whole second copy."},
    {"group_straggler_rank", Kind::gauge, kLater,
     "Rank of the member whose steps take longest to compute."},
    {"group_straggler_slowdown", Kind::gauge, kLater,
     "Time that the slowest member computes a step, divided by the median member's."},
    {"group_straggler_input_share", Kind::gauge, kLater,
     "Share of that difference for which the slowest member waits for its data: 0 to 1."},
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

std::span<const Description> descriptions() {
  return kMetrics;
}

std::string help_of(const std::string& full_name) {
  const std::string_view name = std::string_view(full_name).substr(kPrefix.size());
  const auto* found = std::ranges::find(kMetrics, name, &Description::name);
  return std::string(found == kMetrics.end() ? name : found->help);
}

unsigned who_is(const std::string& role, int index) {
  if (role == "ps") return kPs;
  if (role == "evaluator") return kEvaluator;
  if (role == "chief" || role == "master") return kChief;
  return index == 0 ? kWorker | kFirstWorker : kWorker;
}

}  // namespace muster::metrics
