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

plan::Usage pending(const plan::JobLedger& ledger, double elapsed, int gpus) {
  plan::Usage usage;
  usage.charge(ledger.spent_after(elapsed).since(ledger.spent()), gpus);
  return usage;
}

}  // namespace

void Ledgers::count_from(api::Time begin) {
  const MutexLock lock(mutex_);
  begin_ = begin;
}

Ledgers::Entry Ledgers::begin(const api::TrainingJob& job, api::Time now, Moment ticks) {
  Entry entry;
  entry.job = {job.name_space, job.name, {}, false};
  if (!job.status.goodput.is_null()) entry.job.ledger = plan::JobLedger(job.status.goodput);
  entry.uid = job.uid;
  entry.gpus = plan::gpus_of(job);
  entry.until = std::min(plan::counted_until(job).value_or(now), now);
  // A job that has ended and trains on did not spend the time in between.
  if (job.status.completion_time) entry.until = now;
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
  TimeSpent fresh = ledger.spent().since(before);
  // The leader before has counted what was before, though the job's status may not have it.
  if (begins && begin_ && entry.until < *begin_ && entry.until < now)
    fresh = fresh * (seconds(now - std::min(*begin_, now)) / seconds(now - entry.until));
  entry.counted = ticks;
  entry.until = now;
  by_namespace_[job.name_space].charge(fresh, entry.gpus);
  entry.gpus = plan::gpus_of(job);
  if (plan.status != job.status) plan.status.goodput = ledger.json(now);
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

// Counts what is left of a job that has ended, or is gone.
void Ledgers::close(const Entry& entry, double elapsed, const std::string& state) {
  if (entry.job.finished) return;
  plan::Usage& usage = by_namespace_[entry.job.name_space];
  usage += pending(entry.job.ledger, elapsed, entry.gpus);
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
      all[entry.job.name_space] +=
          pending(entry.job.ledger, seconds(ticks - entry.counted), entry.gpus);
  return all;
}

}  // namespace muster::controller
