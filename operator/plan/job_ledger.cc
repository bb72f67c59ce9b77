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

// Whether the leading replica waits for others in this use, if it has made so many steps meanwhile.
// One that makes steps does not wait for a replica that is missing, such as an evaluator.
bool waits_for_others(TimeUse use, int64_t steps) {
  return use == TimeUse::joining ||
         (steps <= 0 && (use == TimeUse::communication || use == TimeUse::slowest));
}

void move(TimeSpent& spent, TimeUse from, TimeUse to, double share) {
  const double moved = spent[from] * share;
  spent[from] -= moved;
  spent[to] += moved;
}

}  // namespace

bool ProcessLedger::counts() const {
  return final || age < kSilence;
}

std::optional<ProcessLedger> ProcessLedger::of(const Json& answer) {
  constexpr size_t kLongestName = 64;
  const Json& said = member(answer, "ledger");
  ProcessLedger ledger;
  ledger.process = string_or(said, "process", "");
  if (ledger.process.empty() || ledger.process.size() > kLongestName) return std::nullopt;
  ledger.use = use_in(said);
  ledger.spent = TimeSpent::of(member(said, "seconds"));
  ledger.step = std::max<int64_t>(0, integer_or(answer, "step", 0));
  const int64_t here = std::clamp<int64_t>(integer_or(answer, "stepsHere", 0), 0, ledger.step);
  ledger.first_step = ledger.step - here;
  for (const Json& stall : member(answer, "stalled"))
    ledger.stalled = bool_or(stall, "storage", false) ? TimeUse::storage : TimeUse::hanging;
  return ledger;
}

TimeUse use_in(const Json& ledger) {
  return time_use_of(string_or(ledger, "use", "")).value_or(TimeUse::unknown);
}

JobLedger::JobLedger(const Json& goodput, double looked)
    : spent_(TimeSpent::of(member(goodput, "seconds"))),
      use_(TimeUse::unknown),
      looked_(std::max(0.0, looked)),
      use_in_status_(use_in(goodput)),
      process_(string_or(goodput, "process", "")),
      of_process_(TimeSpent::of(member(goodput, "processSeconds"))),
      step_(integer_or(goodput, "step", 0)),
      highest_step_(integer_or(goodput, "highestStep", 0)) {}

void JobLedger::advance(double elapsed, TimeUse use, const std::optional<ProcessLedger>& leader) {
  pending_ += std::max(0.0, elapsed);
  if (leader && leader->counts()) return take(use, *leader);
  if (awaits_answer(elapsed)) return;
  charge(use_, std::exchange(pending_, 0));
  use_ = use;
}

void JobLedger::charge(TimeUse use, double seconds) {
  const double seen = use == TimeUse::unknown ? std::min(seconds, looked_) : 0;
  looked_ -= seen;
  spent_[use_in_status_] += seen;
  spent_[use] += seconds - seen;
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
  charge(rest, std::max(0.0, covered - told * share));
  pending_ -= covered;
  process_ = leader.process;
  of_process_ = leader.spent;
  const bool stands = leader.stalled && leader.step <= step_;
  use_ = leader.final ? use : stands ? *leader.stalled : leader.use;
  // The next answer says whether it makes steps; a status that is written before has this use.
  if (holds_the_group_up(use) && waits_for_others(use_, 0)) use_ = use;
  looked_ = 0;
  step_ = leader.step;
  highest_step_ = std::max(highest_step_, step_);
}

// Names what a process cannot know of its own time.
TimeSpent JobLedger::judged(TimeSpent fresh, TimeUse use, const ProcessLedger& leader) {
  const int64_t made = leader.step - step_;
  for (const TimeUse part : {TimeUse::joining, TimeUse::communication, TimeUse::slowest})
    if (holds_the_group_up(use) && waits_for_others(part, made)) move(fresh, part, use, 1);
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
  JobLedger later = *this;
  later.charge(use_, pending_ + std::max(0.0, elapsed));
  return later.spent_;
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
