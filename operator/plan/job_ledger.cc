#include "operator/plan/job_ledger.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/documents/json.h"
#include "operator/api/status.h"

namespace muster::plan {
namespace {

// After this time without an answer the leading replica counts as silent.
constexpr double kSilence = 15;

constexpr std::array kSteps = {TimeUse::computing, TimeUse::input, TimeUse::communication,
                               TimeUse::slowest};

// The cluster shows these uses; a process tells all others.
constexpr std::array kOfCluster = {TimeUse::queued,   TimeUse::unschedulable, TimeUse::pulling,
                                   TimeUse::starting, TimeUse::lost,          TimeUse::suspended,
                                   TimeUse::stopping, TimeUse::unknown};

bool is_told_by_process(TimeUse use) {
  return std::ranges::find(kOfCluster, use) == kOfCluster.end();
}

// Whether the leading replica waits for its group because of this.
bool holds_the_group_up(TimeUse use) {
  return use == TimeUse::queued || use == TimeUse::unschedulable || use == TimeUse::pulling ||
         use == TimeUse::lost;
}

void move(TimeSpent& spent, TimeUse from, TimeUse to, double share) {
  const double moved = spent[from] * share;
  spent[from] -= moved;
  spent[to] += moved;
}

}  // namespace

std::optional<ProcessLedger> ProcessLedger::of(const Json& answer) {
  constexpr size_t kLongestName = 64;
  const Json& said = member(answer, "ledger");
  ProcessLedger ledger;
  ledger.process = string_or(said, "process", "");
  if (ledger.process.empty() || ledger.process.size() > kLongestName) return std::nullopt;
  ledger.use = time_use_of(string_or(said, "use", "")).value_or(TimeUse::unknown);
  ledger.spent = TimeSpent::of(member(said, "seconds"));
  ledger.step = std::max<int64_t>(0, integer_or(answer, "step", 0));
  const int64_t here = std::clamp<int64_t>(integer_or(answer, "stepsHere", 0), 0, ledger.step);
  ledger.first_step = ledger.step - here;
  for (const Json& stall : member(answer, "stalled"))
    ledger.stalled = bool_or(stall, "storage", false) ? TimeUse::storage : TimeUse::hanging;
  return ledger;
}

JobLedger::JobLedger(const Json& goodput)
    : spent_(TimeSpent::of(member(goodput, "seconds"))),
      use_(TimeUse::unknown),
      process_(string_or(goodput, "process", "")),
      of_process_(TimeSpent::of(member(goodput, "processSeconds"))),
      step_(integer_or(goodput, "step", 0)),
      highest_step_(integer_or(goodput, "highestStep", 0)) {}

void JobLedger::advance(double elapsed, TimeUse use, const std::optional<ProcessLedger>& leader) {
  pending_ += std::max(0.0, elapsed);
  if (leader && (leader->final || leader->age < kSilence)) return take(use, *leader);
  if (awaits_answer(elapsed)) return;
  spent_[use_] += std::exchange(pending_, 0);
  use_ = use;
}

// The first time that passes is that in which nobody looked.
bool JobLedger::awaits_answer(double elapsed) {
  if (use_ != TimeUse::unknown || process_.empty()) return false;
  awaited_ = awaited_ ? *awaited_ + elapsed : 0;
  return *awaited_ < kSilence;
}

void JobLedger::take(TimeUse use, const ProcessLedger& leader) {
  const bool is_new = leader.process != process_;
  const TimeSpent fresh = is_new ? leader.spent : leader.spent.since(of_process_);
  const double covered = leader.final ? pending_ : std::clamp(pending_ - leader.age, 0.0, pending_);
  const double told = fresh.total();
  const double share = told > covered ? covered / told : 1;
  if (is_new) step_ = leader.first_step;
  spent_ += judged(fresh * share, use, leader);
  // Between the last answer of a process and the beginning of the next one, a process was lost.
  const TimeUse rest = is_new && is_told_by_process(use_) ? TimeUse::lost : use_;
  spent_[rest] += std::max(0.0, covered - told * share);
  pending_ -= covered;
  process_ = leader.process;
  of_process_ = leader.spent;
  const bool stands = leader.stalled && leader.step <= step_;
  use_ = leader.final ? use : stands ? *leader.stalled : leader.use;
  if (use_ == TimeUse::joining && holds_the_group_up(use)) use_ = use;
  step_ = leader.step;
  highest_step_ = std::max(highest_step_, step_);
}

// Names what a process cannot know of its own time.
TimeSpent JobLedger::judged(TimeSpent fresh, TimeUse use, const ProcessLedger& leader) {
  if (holds_the_group_up(use)) move(fresh, TimeUse::joining, use, 1);
  const int64_t made = leader.step - step_;
  const int64_t again = std::min(leader.step, highest_step_) - step_;
  const double lost_before =
      made > 0 ? std::clamp(static_cast<double>(again) / static_cast<double>(made), 0.0, 1.0) : 0;
  for (const TimeUse part : kSteps) {
    // A training goes on while, for example, its checkpoints cannot be written.
    if (leader.stalled && made <= 0) move(fresh, part, *leader.stalled, 1);
    move(fresh, part, TimeUse::recomputing, lost_before);
  }
  return fresh;
}

std::optional<api::Time> counted_until(const api::TrainingJob& job) {
  const Json& goodput = job.status.goodput;
  if (goodput.is_null()) return job.created;
  return api::parse_time(string_or(goodput, "until", ""));
}

std::optional<double> share_of_steps(const TimeSpent& spent) {
  const double wanted = spent.total() - spent[TimeUse::queued] - spent[TimeUse::suspended];
  if (wanted <= 0) return std::nullopt;
  double steps = 0;
  for (const TimeUse part : kSteps) steps += spent[part];
  return std::clamp(steps / wanted, 0.0, 1.0);
}

TimeSpent JobLedger::spent_after(double elapsed) const {
  TimeSpent all = spent_;
  all[use_] += pending_ + std::max(0.0, elapsed);
  return all;
}

Json JobLedger::json(api::Time now) const {
  const TimeSpent all = spent_after(0);
  Json json = {{"seconds", all.json()}, {"use", name_of(use_)}, {"until", api::format_time(now)}};
  if (const auto share = share_of_steps(all)) json["share"] = std::round(*share * 1e4) / 1e4;
  if (!process_.empty()) {
    json["process"] = process_;
    json["processSeconds"] = of_process_.json();
  }
  if (highest_step_ > 0) {
    json["step"] = step_;
    json["highestStep"] = highest_step_;
  }
  return json;
}

}  // namespace muster::plan
