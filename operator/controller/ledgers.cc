#include "operator/controller/ledgers.h"

#include <algorithm>

namespace muster::controller {
namespace {

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Ledgers::Entry Ledgers::begin(const api::TrainingJob& job, api::Time now, Moment ticks) {
  Entry entry;
  entry.job = {job.name_space, job.name, {}, false};
  if (!job.status.goodput.is_null()) entry.job.ledger = plan::JobLedger(job.status.goodput);
  entry.uid = job.uid;
  entry.until = std::min(plan::counted_until(job).value_or(now), now);
  // A job that has ended and trains on did not spend the time in between.
  if (job.status.completion_time) entry.until = now;
  entry.counted = ticks - (now - entry.until);
  return entry;
}

void Ledgers::look(const api::TrainingJob& job, const plan::Observed& observed, plan::Plan& plan,
                   api::Time now, Moment ticks) {
  const bool is_over = job.status.completion_time && plan.status.completion_time;
  if (is_over || job.deleting || job.managed_by != api::kManagedByMuster) return;
  const std::string key = job.name_space + "/" + job.name;
  const MutexLock lock(mutex_);
  auto found = jobs_.find(key);
  const bool told_later =
      found != jobs_.end() && plan::counted_until(job).value_or(now) > found->second.until;
  if (found == jobs_.end() || found->second.uid != job.uid || found->second.job.finished ||
      told_later)
    found = jobs_.insert_or_assign(key, begin(job, now, ticks)).first;
  Entry& entry = found->second;
  plan::JobLedger& ledger = entry.job.ledger;
  const TimeSpent before = ledger.spent();
  ledger.advance(seconds(ticks - entry.counted), plan.use, observed.ledger);
  entry.counted = ticks;
  entry.until = now;
  by_namespace_[job.name_space] += ledger.spent().since(before);
  entry.job.finished = plan.status.completion_time.has_value();
  if (entry.job.finished) keep_finished(key);
  if (plan.status != job.status) plan.status.goodput = ledger.json(now);
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

void Ledgers::forget(const std::string& key) {
  const MutexLock lock(mutex_);
  jobs_.erase(key);
}

void Ledgers::each(const std::function<void(const Job& job)>& show) const {
  const MutexLock lock(mutex_);
  for (const auto& [key, entry] : jobs_) show(entry.job);
}

std::map<std::string, TimeSpent> Ledgers::by_namespace() const {
  const MutexLock lock(mutex_);
  return by_namespace_;
}

}  // namespace muster::controller
