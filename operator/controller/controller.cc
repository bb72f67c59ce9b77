#include "operator/controller/controller.h"

#include "common/error.h"

namespace muster::controller {

void Controller::wake(const std::string& key) {
  queue_.add(key, cluster_.now());
}

std::optional<api::Time> Controller::work() {
  while (const std::optional<std::string> key = queue_.take(cluster_.now())) look_at(*key);
  return queue_.next();
}

void Controller::look_at(const std::string& key) {
  try {
    reconcile(key);
    queue_.succeeded(key);
    queue_.done(key);
  } catch (const Unavailable& error) {
    queue_.failed(key, cluster_.now());
    report_({key, error.what(), queue_.failures(key), /*will_retry=*/true});
  } catch (const Invalid& error) {
    queue_.done(key);
    report_({key, error.what(), queue_.failures(key), /*will_retry=*/false});
  }
}

// What was done shows in the next view, which the cluster's events bring about: no pass follows
// from our own writes.
void Controller::reconcile(const std::string& key) {
  const std::optional<api::TrainingJob> job = cluster_.get(key);
  if (!job) return queue_.forget(key);
  const plan::Plan plan = plan::plan(*job, cluster_.observe(*job), cluster_.now());
  if (plan.status != job->status) cluster_.publish_status(*job, plan.status);
  for (const plan::Event& event : plan.events) cluster_.emit(*job, event);
  for (const plan::RemoveReplica& replica : plan.remove) cluster_.remove(*job, replica);
  for (const plan::CreateReplica& replica : plan.create) cluster_.create(*job, replica);
  if (plan.remove_job) return cluster_.remove_job(*job);
  if (plan.look_again) queue_.add(key, *plan.look_again);
}

}  // namespace muster::controller
