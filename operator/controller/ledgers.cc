#include "operator/controller/ledgers.h"

#include <algorithm>

namespace muster::controller {
namespace {

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string key_of(const api::TrainingJob& job) {
  return job.name_space + "/" + job.name;
}

// Returns what is left of `spent` without its first `skipped` seconds.
TimeSpent without(const TimeSpent& spent, double skipped) {
  const double all = spent.total();
  return all > 0 ? spent * (std::max(0.0, all - skipped) / all) : spent;
}

}  // namespace

void Ledgers::count_from(api::Time begin, std::optional<api::Time> looked_until) {
  const MutexLock lock(mutex_);
  begin_ = begin;
  looked_until_ = looked_until;
}

Ledgers::Entry Ledgers::begin(const api::TrainingJob& job, api::Time now, Moment ticks) {
  Entry entry;
  entry.job = {job.name_space, job.name, {}, false};
  entry.uid = job.uid;
  entry.gpus = plan::gpus_of(job);
  entry.until = std::min(plan::counted_until(job).value_or(now), now);
  // A job that has ended and trains on did not spend the time in between.
  if (job.status.completion_time) entry.until = now;
  const auto seconds_until = [&](const std::optional<api::Time>& end) {
    return end ? std::max(0.0, seconds(std::min(*end, now) - entry.until)) : 0;
  };
  if (!job.status.goodput.is_null())
    entry.job.ledger = plan::JobLedger(job.status.goodput, seconds_until(looked_until_));
  entry.counted_before = seconds_until(begin_);
  entry.counted = ticks - (now - entry.until);
  return entry;
}

void Ledgers::look(const api::TrainingJob& job, const plan::Observed& observed, plan::Plan& plan,
                   api::Time now, Moment ticks) {
  if (job.deleting || job.managed_by != api::kManagedByMuster) return;
  const std::string key = key_of(job);
  const MutexLock lock(mutex_);
  if (job.status.completion_time && plan.status.completion_time) return finish(job, job.status);
  auto found = jobs_.find(key);
  const bool told_later =
      found != jobs_.end() && plan::counted_until(job).value_or(now) > found->second.until;
  const bool is_other = found != jobs_.end() && found->second.uid != job.uid;
  if (is_other) close(found->second, seconds(ticks - found->second.counted), plan::kDeleted);
  const bool begins = found == jobs_.end() || is_other || found->second.job.finished || told_later;
  if (begins) found = jobs_.insert_or_assign(key, begin(job, now, ticks)).first;
  Entry& entry = found->second;
  plan::JobLedger& ledger = entry.job.ledger;
  const TimeSpent before = ledger.spent();
  ledger.advance(seconds(ticks - entry.counted), plan.use, observed.ledger);
  entry.told_by_process = observed.ledger && observed.ledger->counts() && !observed.ledger->final;
  entry.counted = std::max(entry.counted, ticks);
  entry.until = now;
  charge(entry, before);
  entry.gpus = plan::gpus_of(job);
  if (plan.status != job.status) plan.status.goodput = ledger.json(now);
}

// Adds to the sums what the job's ledger has got since it had `before`.
void Ledgers::charge(Entry& entry, const TimeSpent& before) {
  const TimeSpent fresh = entry.job.ledger.spent().since(before);
  by_namespace_[entry.job.name_space].charge(without(fresh, entry.counted_before), entry.gpus);
  entry.counted_before = std::max(0.0, entry.counted_before - fresh.total());
}

void Ledgers::count_until(api::Time now, Moment ticks) {
  const MutexLock lock(mutex_);
  for (auto& [key, entry] : jobs_) {
    plan::JobLedger& ledger = entry.job.ledger;
    const bool awaits_a_look = ledger.use() == TimeUse::unknown;
    if (entry.job.finished || entry.told_by_process || awaits_a_look || ticks <= entry.counted)
      continue;
    const TimeSpent before = ledger.spent();
    ledger.advance(seconds(ticks - entry.counted), ledger.use(), {});
    entry.counted = ticks;
    entry.until = now;
    charge(entry, before);
  }
}

void Ledgers::told(const api::TrainingJob& job, const api::JobStatus& status) {
  if (!status.completion_time) return;
  const MutexLock lock(mutex_);
  finish(job, status);
}

void Ledgers::finish(const api::TrainingJob& job, const api::JobStatus& status) {
  const auto found = jobs_.find(key_of(job));
  if (found == jobs_.end() || found->second.uid != job.uid || found->second.job.finished) return;
  close(found->second, 0, plan::end_state(status));
  found->second.job.finished = true;
  keep_finished(found->first);
}

// Returns what the job has used that is not counted yet.
plan::Usage Ledgers::pending(const Entry& entry, double elapsed) {
  const plan::JobLedger& ledger = entry.job.ledger;
  plan::Usage usage;
  usage.charge(without(ledger.spent_after(elapsed).since(ledger.spent()), entry.counted_before),
               entry.gpus);
  return usage;
}

// Counts what is left of a job that has ended, or is gone.
void Ledgers::close(const Entry& entry, double elapsed, const std::string& state) {
  if (entry.job.finished) return;
  plan::Usage& usage = by_namespace_[entry.job.name_space];
  usage += pending(entry, elapsed);
  ++usage.ended[state];
}

void Ledgers::keep_finished(const std::string& key) {
  finished_.push_back(key);
  if (finished_.size() <= kMostFinished) return;
  const auto oldest = jobs_.find(finished_.front());
  finished_.pop_front();
  // A job of this name may have begun anew, and then runs or stands further back.
  if (oldest != jobs_.end() && oldest->second.job.finished &&
      std::ranges::find(finished_, oldest->first) == finished_.end())
    jobs_.erase(oldest);
}

void Ledgers::forget(const std::string& key, Moment ticks) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(key);
  if (found == jobs_.end()) return;
  close(found->second, seconds(ticks - found->second.counted), plan::kDeleted);
  jobs_.erase(found);
}

void Ledgers::each(const std::function<void(const Job& job)>& show) const {
  const MutexLock lock(mutex_);
  for (const auto& [key, entry] : jobs_) show(entry.job);
}

plan::UsageByNamespace Ledgers::by_namespace() const {
  const MutexLock lock(mutex_);
  return by_namespace_;
}

plan::UsageByNamespace Ledgers::by_namespace(Moment ticks) const {
  const MutexLock lock(mutex_);
  plan::UsageByNamespace all = by_namespace_;
  for (const auto& [key, entry] : jobs_)
    if (!entry.job.finished)
      all[entry.job.name_space] += pending(entry, seconds(ticks - entry.counted));
  return all;
}

}  // namespace muster::controller
