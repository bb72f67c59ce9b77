#include "operator/kube/tfjob/tfjob_reconciler.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/documents/json.h"
#include "common/program/log.h"
#include "operator/api/status.h"
#include "operator/convert/tfjob.h"
#include "operator/kube/api/codec.h"
#include "operator/kube/api/metadata.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/tfjob_pods.h"
#include "operator/kube/tfjob/tfjob_status.h"
#include "operator/plan/draft.h"

namespace muster::kube {

namespace {

// Whether two objects have the same fields, in whatever order.
bool is_same(const Json& a, const Json& b) {
  return nlohmann::json(a) == nlohmann::json(b);
}

bool is_suspended(const Json& companion) {
  return api::to_job_status(member(companion, "status")).is_true("Suspended");
}

void copy_policy(const Json& from, Json& to) {
  constexpr const char* kPolicy = "schedulingPolicy";
  to.erase(kPolicy);
  if (from.contains(kPolicy)) to[kPolicy] = from[kPolicy];
}

bool is_finished(const Json& companion) {
  return api::to_job_status(member(companion, "status")).is_true("Finished");
}

// Whether the API server refuses the companion's pods and has never accepted one.
bool is_not_accepted(const Json& companion) {
  const api::JobStatus status = api::to_job_status(member(companion, "status"));
  const api::Condition* accepted = status.find("Accepted");
  return accepted != nullptr && !accepted->status && status.records.empty();
}

}  // namespace

TfJobReconciler::TfJobReconciler(Transport& transport, Store<WholeObject>& training_jobs,
                                 Settings settings, Environment environment, Counting count)
    : settings_(std::move(settings)),
      environment_(std::move(environment)),
      count_(std::move(count)),
      transport_(transport, environment_.leads),
      client_(transport_),
      training_jobs_(training_jobs),
      tfjobs_({}, [this](const auto* before, const auto* after) { tfjob_changed(before, after); }) {
}

std::string TfJobReconciler::companion_key(const std::string& key) {
  const size_t slash = key.find('/');
  return ObjectName{key.substr(0, slash), convert::job_name_of_tfjob(key.substr(slash + 1))}.key();
}

void TfJobReconciler::tfjob_changed(const WholeObject* before, const WholeObject* after) {
  const ObjectMeta& meta = after != nullptr ? after->meta : before->meta;
  const std::string companion = companion_key(meta.key());
  const bool is_gone =
      before != nullptr && (after == nullptr || after->meta.uid != before->meta.uid);
  if (after != nullptr) note_refusal(after->json());
  {
    const MutexLock lock(mutex_);
    if (is_gone) told_.erase(before->meta.uid);
    if (is_gone) refused_.erase(before->meta.uid);
    if (companion != meta.key() && after != nullptr) long_names_[companion] = meta.key();
    if (after == nullptr) long_names_.erase(companion);
  }
  if (is_gone && is_taken(before->json(), settings_.taken) && environment_.leads())
    count_(Count::deleted, meta.name_space);
  const bool same = before != nullptr && after != nullptr && !is_gone &&
                    before->meta.generation == after->meta.generation &&
                    before->meta.deleted.has_value() == after->meta.deleted.has_value();
  if (!same) environment_.wake(meta.key(), environment_.now());
}

void TfJobReconciler::training_job_changed(const std::string& training_job_key) {
  if (settings_.taken == TakenTfJobs::none) return;
  std::string key = training_job_key;
  {
    const MutexLock lock(mutex_);
    if (const auto found = long_names_.find(key); found != long_names_.end()) key = found->second;
  }
  environment_.wake(key, environment_.now());
}

void TfJobReconciler::note_refusal(const Json& tfjob) {
  const bool refused = is_refused_tfjob(tfjob);
  const MutexLock lock(mutex_);
  if (refused)
    refused_[uid_of(tfjob)] = name_of(tfjob).key();
  else
    refused_.erase(uid_of(tfjob));
}

std::vector<std::string> TfJobReconciler::refused() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> keys;
  for (const auto& [uid, key] : refused_) keys.push_back(key);
  return keys;
}

std::optional<api::Time> TfJobReconciler::reconcile(const std::string& key) {
  const std::optional<WholeObject> object = tfjobs_.get(key);
  if (!object || object->meta.deleted) return std::nullopt;
  const Json tfjob = object->json();
  if (!is_taken(tfjob, settings_.taken)) return std::nullopt;
  const std::optional<WholeObject> found = training_jobs_.get(companion_key(key));
  if (!found) return keep_companion(tfjob, nullptr);
  const Json companion = found->json();
  const api::TrainingJob job = api::to_training_job(companion);
  const bool has_news = job.tfjob.uid == uid_of(tfjob) && !job.status.conditions.empty();
  try {
    if (has_news) write_status(tfjob, tfjob_status(tfjob, job, job.status, environment_.now()));
  } catch (const Unavailable&) {
    keep_companion(tfjob, &companion);  // for example, the user's wish to suspend does not wait
    throw;
  }
  return keep_companion(tfjob, &companion);
}

// A finished TFJob does not run again, even if its companion was deleted. Its time to live begins
// after the companion's last replicas have ended, for example an evaluator that has a checkpoint
// left.
std::optional<api::Time> TfJobReconciler::keep_companion(const Json& tfjob, const Json* companion) {
  if (is_tfjob_over(tfjob)) {
    const bool ends = companion != nullptr && owner_uid_of(*companion) == uid_of(tfjob) &&
                      !is_finished(*companion);
    return ends ? std::nullopt : end_in_time(tfjob);
  }
  if (companion == nullptr) {
    make_companion(tfjob);
  } else if (owner_uid_of(*companion) != uid_of(tfjob)) {
    tell_of_taken_name(tfjob, *companion);
  } else if (tfjob_generation_of(*companion) != generation_of(tfjob)) {
    update_companion(*companion, tfjob);
  }
  return std::nullopt;
}

// The pass that sees the other TrainingJob gone creates the companion. The garbage collector
// deletes the companion of an earlier TFJob of this name.
void TfJobReconciler::tell_of_taken_name(const Json& tfjob, const Json& other) {
  const std::string owner = describe_owner(other);
  if (owner.ends_with("of TFJob " + name_of(tfjob).name) || !is_new(tfjob, "name " + uid_of(other)))
    return;
  emit(tfjob,
       {true, "TFJobNameTaken",
        "expected no TrainingJob of the name that this TFJob is to be run by, found " + owner});
}

void TfJobReconciler::make_companion(const Json& tfjob) {
  try {
    client_.create(training_jobs(), companion_of(tfjob, settings_.gang_scheduler));
    count_(Count::created, name_of(tfjob).name_space);
    const std::string key = name_of(tfjob).key();
    log::info(key + ": a TrainingJob is made for the TFJob", {{"job", key}});
  } catch (const ApiUnavailable& error) {
    if (!error.status().already_exists()) throw;  // otherwise the companion will soon be in view
  } catch (const Invalid& error) {
    const bool is_new = !is_tfjob_finished(member(tfjob, "status"));
    write_status(tfjob, refused_tfjob_status(tfjob, why_refused(tfjob, error), environment_.now()));
    // It counts among the failed ones now, so it does among the created ones.
    if (is_new) count_(Count::created, name_of(tfjob).name_space);
  }
}

// The API server's message names fields of the TrainingJob, which users of the TFJob have not
// written.
std::string TfJobReconciler::why_refused(const Json& tfjob, const Invalid& error) const {
  const auto* by_server = dynamic_cast<const ApiInvalid*>(&error);
  const std::string problems =
      by_server == nullptr ? "" : companion_problems(tfjob, settings_.gang_scheduler);
  return problems.empty() ? error.what() : problems;
}

// A refused change is tried once, and again when the job has been suspended, because more fields
// may change then.
void TfJobReconciler::update_companion(const Json& companion, const Json& tfjob) {
  const std::string attempt =
      "update " + generation_of(tfjob) + (is_suspended(companion) ? " suspended" : "");
  if (was_told(tfjob, attempt)) return;
  try {
    if (change_companion(companion, tfjob)) return;
  } catch (const Invalid& error) {
    emit(tfjob, {true, "TFJobUpdateRefused",
                 "the job goes on as it was before the last change: " + why_refused(tfjob, error)});
  }
  is_new(tfjob, attempt);
}

// Returns false if only the suspension, which is a part of the change, could be written so far.
bool TfJobReconciler::change_companion(Json companion, const Json& tfjob) {
  const Json wanted = companion_of(tfjob, settings_.gang_scheduler);
  Json changed = companion;
  changed["spec"] = wanted["spec"];
  // A new pod of a gang would wait for the gang's other pods, but the running pods belong to no
  // gang.
  if (!is_suspended(companion)) copy_policy(companion["spec"], changed["spec"]);
  changed["metadata"]["annotations"][kTfJobGenerationAnnotation] = generation_of(tfjob);
  try {
    client_.update(training_jobs(), changed);
    return true;
  } catch (const ApiInvalid&) {
    if (is_not_accepted(companion)) {
      make_anew(companion);
      return true;
    }
    const bool suspends = bool_or(wanted["spec"], "suspend", false);
    if (!suspends || bool_or(companion["spec"], "suspend", false)) throw;
  }
  companion["spec"]["suspend"] = true;
  client_.update(training_jobs(), companion);
  return false;
}

// Deletes the companion. The pass that sees it gone creates another.
void TfJobReconciler::make_anew(const Json& companion) {
  Client::RemoveOptions options;
  options.preconditions.uid = uid_of(companion);
  client_.remove(training_jobs(), name_of(companion), options);
  const std::string key = name_of(companion).key();
  log::info(key + ": the TrainingJob, which had no pods, is made anew for the changed TFJob",
            {{"job", key}});
}

bool TfJobReconciler::was_told(const Json& tfjob, const std::string& what) const {
  const MutexLock lock(mutex_);
  const auto found = told_.find(uid_of(tfjob));
  return found != told_.end() && found->second.contains(what);
}

bool TfJobReconciler::is_new(const Json& tfjob, const std::string& what) {
  const MutexLock lock(mutex_);
  return told_[uid_of(tfjob)].insert(what).second;
}

std::optional<api::Time> TfJobReconciler::end_in_time(const Json& tfjob) {
  const Json& seconds =
      member(member(member(tfjob, "spec"), "runPolicy"), "ttlSecondsAfterFinished");
  const auto completed = api::parse_time(string_or(tfjob["status"], "completionTime", ""));
  if (!seconds.is_number_integer() || !completed) return std::nullopt;
  if (seconds.get<int64_t>() < 0) return std::nullopt;  // the TFJob was refused because of it
  const api::Time due = plan::later_by(*completed, seconds.get<int64_t>());
  if (environment_.now() < due) return due;
  Client::RemoveOptions options;
  options.preconditions.uid = uid_of(tfjob);
  client_.remove(kube::tfjobs(), name_of(tfjob), options);
  return std::nullopt;
}

// The PUT carries UID and version, so that the status of an earlier TFJob of this name is not
// written.
void TfJobReconciler::write_status(const Json& tfjob, const Json& status) {
  const Json before = member(tfjob, "status");
  if (is_same(before, status)) return;
  Json body = tfjob;
  body["status"] = status;
  WriteOptions options;
  options.subresource = "status";
  try {
    tfjobs_.refresh(decode_object<WholeObject>(client_.update(kube::tfjobs(), body, options).text));
  } catch (const ApiUnavailable& error) {
    if (!error.status().not_found()) throw;
    return;
  }
  note_refusal(body);
  const ObjectName name = name_of(tfjob);
  for (const Json& news : tfjob_news(before, status)) {
    const std::string type = news["type"];
    if (type == "Created") continue;
    emit(tfjob, {type == "Failed" || type == "Restarting", news["reason"], news["message"]});
    if (type == "Succeeded") count_(Count::successful, name.name_space);
    if (type == "Failed") count_(Count::failed, name.name_space);
    if (type == "Restarting") count_(Count::restarted, name.name_space);
  }
  if (is_tfjob_finished(status)) environment_.wake(name.key(), environment_.now());  // time to live
}

void TfJobReconciler::emit(const Json& tfjob, EventText text) const {
  const ObjectName name = name_of(tfjob);
  environment_.emit(subject_of(kube::tfjobs(), name.name_space, name.name, uid_of(tfjob)),
                    std::move(text));
}

}  // namespace muster::kube
