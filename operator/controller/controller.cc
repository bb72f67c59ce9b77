#include "operator/controller/controller.h"

#include <algorithm>
#include <ctime>

#include "common/error.h"
#include "common/system/file.h"
#include "operator/plan/plan.h"

namespace muster::controller {

namespace {

// The longest time until a job is looked at again, because somebody may set the cluster's clock in
// between.
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24);

// Our own writes cause no further pass: the cluster's events bring a new view that shows their
// results.
std::optional<api::Time> reconcile_job(cluster::Cluster& cluster, Ledgers& ledgers,
                                       const Moment ticks, const std::string& key) {
  std::optional<api::TrainingJob> job = cluster.get(key);
  if (!job) {
    ledgers.forget(key, ticks);
    return std::nullopt;
  }
  const plan::Observed observed = cluster.observe(*job);
  const api::Time now = cluster.now();
  plan::Plan plan = plan::plan(*job, observed, now);
  ledgers.look(*job, observed, plan, now, ticks);
  const bool is_told = plan.status == job->status || cluster.publish_status(*job, plan.status);
  if (is_told) {
    ledgers.told(*job, plan.status);
    for (const plan::Event& event : plan.events) cluster.emit(*job, event);
  }
  job->status = plan.status;
  if (!plan.remove.empty()) cluster.remove(*job, plan.remove);
  if (!plan.create.empty()) cluster.create(*job, plan.create);
  if (!plan.remove_job) return plan.look_again;
  cluster.remove_job(*job);
  return std::nullopt;
}

}  // namespace

Controller::Controller(cluster::Cluster& cluster, Report report, BackOff back_off, Monitor* monitor,
                       Clock clock, CpuTime cpu_time)
    : Controller(
          [this, &cluster](const std::string& key) {
            return reconcile_job(cluster, ledgers_, clock_(), key);
          },
          [&cluster] { return cluster.now(); }, std::move(report), back_off, monitor,
          std::move(clock), std::move(cpu_time)) {}

std::chrono::nanoseconds Controller::cpu_time_of_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void Controller::wake(const std::string& key) {
  queue_.add(key, clock_());
}

void Controller::wake(const std::string& key, api::Time at) {
  queue_.add(key, clock_() + std::min(at - now_(), kLongest));
}

std::optional<std::chrono::milliseconds> Controller::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Moment now = clock_();
    Moment since = now;
    const std::optional<std::string> key = queue_.take(now, &since);
    if (!key) break;
    if (monitor_ != nullptr)
      monitor_->began(*key, std::chrono::floor<std::chrono::milliseconds>(now - since));
    const Monitor::Result result = look_at(*key);
    if (monitor_ != nullptr) monitor_->ended(*key, result);
  }
  return until_next();
}

std::optional<std::chrono::milliseconds> Controller::until_next() const {
  const std::optional<Moment> next = queue_.next();
  if (!next) return std::nullopt;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - clock_());
  return std::max(left, std::chrono::milliseconds(0));
}

Monitor::Result Controller::look_at(const std::string& key) {
  try {
    const auto before = cpu_time_();
    const std::optional<api::Time> again = reconcile_(key);
    if (again) wake(key, *again);
    queue_.succeeded(key);
    rest(key, cpu_time_() - before);
    return again ? Monitor::Result::later : Monitor::Result::done;
  } catch (const Unavailable& error) {
    queue_.failed(key, clock_());
    const auto* write = dynamic_cast<const WriteError*>(&error);
    report_({key, error.what(), queue_.failures(key), /*invalid=*/false, /*broken=*/false,
             /*lasting=*/write != nullptr && write->lasting()});
  } catch (const Invalid& error) {
    queue_.refused(key, clock_());
    report_({key, error.what(), queue_.failures(key), /*invalid=*/true});
  } catch (const std::exception& error) {
    // The other jobs go on.
    queue_.refused(key, clock_());
    report_({key, std::string("a bug of Muster's keeps this job from being run: ") + error.what(),
             queue_.failures(key), /*invalid=*/true, /*broken=*/true});
  }
  return Monitor::Result::error;
}

void Controller::rest(const std::string& key, std::chrono::nanoseconds used) {
  const auto rest = std::min<std::chrono::nanoseconds>(used * kRest, kLongestRest);
  if (rest < kLeastRest) return queue_.done(key);
  const Moment now = clock_();
  queue_.done(key, now, now + rest);
}

}  // namespace muster::controller
