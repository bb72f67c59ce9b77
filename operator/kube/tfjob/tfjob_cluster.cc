#include "operator/kube/tfjob/tfjob_cluster.h"

#include <utility>

#include "common/json.h"
#include "common/log.h"
#include "operator/api/status.h"
#include "operator/kube/api/codec.h"
#include "operator/kube/api/metadata.h"
#include "operator/kube/tfjob/tfjob_status.h"

namespace muster::kube {

namespace {

constexpr std::chrono::seconds kAskAgainAboutName{10};

std::string companion_key(const ObjectMeta& tfjob) {
  return tfjob.name_space + "/" + companion_name(tfjob.name);
}

std::string generation_of(const WholeObject& companion) {
  return string_or(member(member(companion.json(), "metadata"), "annotations"),
                   kTfJobGenerationAnnotation, "");
}

// Returns only what kubeflow.org/v1 compares by: a write that changes nothing is left out.
bool same(const Json& before, const Json& after) {
  for (const auto& [field, value] : after.items())
    if (member(before, field.c_str()) != value) return false;
  return true;
}

}  // namespace

TfJobCluster::TfJobCluster(cluster::Cluster& inner, Transport& transport,
                           Store<WholeObject>& training_jobs, TakenTfJobs taken,
                           Environment environment)
    : inner_(inner),
      taken_(taken),
      environment_(std::move(environment)),
      transport_(transport, environment_.leads),
      client_(transport_),
      training_jobs_(training_jobs),
      tfjobs_({}, [this](const auto* before, const auto* after) { tfjob_changed(before, after); }) {
}

void TfJobCluster::tfjob_changed(const WholeObject* before, const WholeObject* after) {
  const ObjectMeta& meta = after != nullptr ? after->meta : before->meta;
  const std::string key = companion_key(meta);
  if (key != meta.key()) {
    const MutexLock lock(mutex_);
    if (after != nullptr)
      long_names_[key] = meta.key();
    else
      long_names_.erase(key);
  }
  if (before != nullptr && (after == nullptr || after->meta.uid != before->meta.uid)) {
    {
      const MutexLock lock(mutex_);
      refused_.erase(before->meta.uid);
    }
    if (is_taken(before->json(), taken_) && environment_.leads())
      environment_.count(Count::deleted, meta.name_space);
  }
  const bool same = before != nullptr && after != nullptr && before->meta.uid == after->meta.uid &&
                    before->meta.generation == after->meta.generation &&
                    before->meta.deleted.has_value() == after->meta.deleted.has_value();
  if (!same) environment_.wake(key, now());
}

std::set<std::string> TfJobCluster::keys() const {
  std::set<std::string> keys;
  for (const std::string& key : tfjobs_.keys()) {
    const size_t slash = key.find('/');
    keys.insert(key.substr(0, slash + 1) + companion_name(key.substr(slash + 1)));
  }
  return keys;
}

std::optional<WholeObject> TfJobCluster::tfjob_of(const std::string& key) const {
  std::string named = key;
  {
    const MutexLock lock(mutex_);
    if (const auto found = long_names_.find(key); found != long_names_.end()) named = found->second;
  }
  std::optional<WholeObject> tfjob = tfjobs_.get(named);
  if (tfjob && (tfjob->meta.deleted || !is_taken(tfjob->json(), taken_))) tfjob.reset();
  return tfjob;
}

std::optional<api::TrainingJob> TfJobCluster::get(const std::string& key) {
  if (const std::optional<WholeObject> tfjob = tfjob_of(key)) keep_companion(key, *tfjob);
  std::optional<api::TrainingJob> job = inner_.get(key);
  if (job) tell(*job, job->status);  // an earlier process may have left without this
  return job;
}

// A TFJob that has finished is not run again, whatever became of its companion. The companion of an
// earlier TFJob of this name is the garbage collector's.
void TfJobCluster::keep_companion(const std::string& key, const WholeObject& tfjob) {
  const Json manifest = tfjob.json();
  const std::optional<WholeObject> companion = training_jobs_.get(key);
  if (companion && companion->meta.owner_uid != tfjob.meta.uid) {
    if (companion->meta.owner_uid.empty())
      emit(manifest, {true, "TFJobNameTaken",
                      "expected no TrainingJob " + key +
                          ", which is to run this TFJob, found one "
                          "that does not belong to it"});
    environment_.wake(key, now() + kAskAgainAboutName);
    return;
  }
  if (is_tfjob_finished(member(manifest, "status"))) {
    end_in_time(key, manifest);
    if (companion || !is_refused_tfjob(manifest["status"])) return;
  }
  if (!companion) return make_companion(key, manifest);
  if (generation_of(*companion) != std::to_string(tfjob.meta.generation))
    update_companion(*companion, manifest);
}

void TfJobCluster::make_companion(const std::string& key, const Json& tfjob) {
  try {
    client_.create(training_jobs(), companion_of(tfjob));
    environment_.count(Count::created, name_of(tfjob).name_space);
    log::info("a TrainingJob is made for the TFJob", {{"job", key}});
  } catch (const ApiUnavailable& error) {
    if (!error.status().already_exists()) throw;  // else it is on its way into the view
  } catch (const Invalid& error) {
    refuse(tfjob, error.what());
  }
}

void TfJobCluster::refuse(const Json& tfjob, const std::string& why) {
  const Json& failed = tfjob_condition(member(tfjob, "status"), "Failed");
  if (string_or(failed, "message", "") != why)
    write_status(tfjob, refused_tfjob_status(tfjob, why, now()));
}

// Tried once for each generation of the TFJob: the server refuses changes of a running job that
// cannot be carried out.
void TfJobCluster::update_companion(const WholeObject& companion, const Json& tfjob) {
  const std::string uid = uid_of(tfjob);
  const int64_t generation = integer_or(tfjob["metadata"], "generation", 0);
  {
    const MutexLock lock(mutex_);
    if (const auto found = refused_.find(uid);
        found != refused_.end() && found->second == generation)
      return;
  }
  try {
    const Json wanted = companion_of(tfjob);
    const Json patch = {{"metadata", {{"annotations", wanted["metadata"]["annotations"]}}},
                        {"spec", wanted["spec"]}};
    const ObjectName name{companion.meta.name_space, companion.meta.name};
    client_.patch(training_jobs(), name, PatchKind::merge, patch, {companion.meta.uid, ""});
  } catch (const Invalid& error) {
    emit(tfjob, {true, "TFJobUpdateRefused",
                 std::string("the job goes on as it was before the last change: ") + error.what()});
    const MutexLock lock(mutex_);
    refused_[uid] = generation;
  }
}

void TfJobCluster::end_in_time(const std::string& key, const Json& tfjob) {
  const Json& seconds = member(member(tfjob["spec"], "runPolicy"), "ttlSecondsAfterFinished");
  const auto completed = api::parse_time(string_or(tfjob["status"], "completionTime", ""));
  if (!seconds.is_number_integer() || !completed) return;
  const api::Time due = *completed + std::chrono::seconds(seconds.get<int64_t>());
  if (now() < due) return environment_.wake(key, due);
  Client::RemoveOptions options;
  options.preconditions.uid = uid_of(tfjob);
  client_.remove(kube::tfjobs(), name_of(tfjob), options);
}

bool TfJobCluster::publish_status(const api::TrainingJob& job, const api::JobStatus& status) {
  if (!inner_.publish_status(job, status)) return false;
  tell(job, status);
  return true;
}

void TfJobCluster::tell(const api::TrainingJob& job, const api::JobStatus& status) {
  const std::optional<WholeObject> tfjob = tfjob_of(job.name_space + "/" + job.name);
  if (!tfjob || job.tfjob.uid != tfjob->meta.uid) return;
  const Json manifest = tfjob->json();
  write_status(manifest, tfjob_status(manifest, job, status));
}

// A TFJob that has gone meanwhile needs no status.
void TfJobCluster::write_status(const Json& tfjob, const Json& status) {
  const Json& before = member(tfjob, "status");
  if (same(before, status)) return;
  WriteOptions options;
  options.subresource = "status";
  try {
    tfjobs_.refresh(
        decode_object<WholeObject>(client_
                                       .patch(kube::tfjobs(), name_of(tfjob), PatchKind::merge,
                                              {{"status", status}}, {uid_of(tfjob), ""}, options)
                                       .text));
  } catch (const ApiUnavailable& error) {
    if (!error.status().not_found()) throw;
    return;
  }
  const std::string name_space = name_of(tfjob).name_space;
  for (const Json& news : tfjob_news(before, status)) {
    const std::string type = news["type"];
    emit(tfjob, {type == "Failed" || type == "Restarting", news["reason"], news["message"]});
    if (type == "Succeeded") environment_.count(Count::successful, name_space);
    if (type == "Failed") environment_.count(Count::failed, name_space);
    if (type == "Restarting") environment_.count(Count::restarted, name_space);
  }
  if (is_tfjob_finished(status))
    environment_.wake(name_space + "/" + companion_name(name_of(tfjob).name), now());
}

void TfJobCluster::emit(const Json& tfjob, EventText text) const {
  const Resource resource = kube::tfjobs();
  const ObjectName name = name_of(tfjob);
  environment_.emit(
      {resource.api_version(), resource.kind, name.name_space, name.name, uid_of(tfjob)},
      std::move(text));
}

// What happens to the replicas is told of the TFJob too: its users do not look at the TrainingJob.
void TfJobCluster::emit(const api::TrainingJob& job, const plan::Event& event) {
  inner_.emit(job, event);
  const std::optional<WholeObject> tfjob = tfjob_of(job.name_space + "/" + job.name);
  if (tfjob && job.tfjob.uid == tfjob->meta.uid)
    emit(tfjob->json(), {event.kind == plan::Event::Kind::warning, event.reason, event.message});
}

}  // namespace muster::kube
