#include "tests/unit/operator/kube/cluster/kube_world.h"

#include <gtest/gtest.h>

#include "common/documents/json.h"
#include "operator/kube/pods/names.h"
#include "tests/unit/operator/kube/chart_rights.h"

namespace muster::kube {

namespace {

using namespace std::chrono_literals;

constexpr int kManyPasses = 1000;

Json http_peers() {
  return Json::parse(R"([{"podSelector": {"matchLabels": {"app": "operator"}}}])");
}

PodSettings pod_settings(const std::set<std::string>& allowed_accounts) {
  return {"muster/trainer:1", "muster/trainer-cuda:1", "", "cluster.local", allowed_accounts};
}

int attempt_of(const Json& pod) {
  return std::stoi(pod["metadata"]["labels"][kAttemptLabel].get<std::string>());
}

}  // namespace

Environment KubeWorld::environment() {
  Environment environment;
  environment.now = [this] { return time; };
  environment.wake = [this](const std::string& key, api::Time at) { wake(key, at); };
  environment.emit = [this](const EventSubject& subject, const EventText& text) {
    const bool of_tfjob = subject.kind == "TFJob";
    events.push_back((of_tfjob ? "TFJob " : "") + subject.name + ": " + text.reason);
    if (!of_tfjob) messages.push_back(text.message);
  };
  environment.leads = [this] { return leads; };
  environment.job_changed = [this](const std::string& key) {
    if (operator_) operator_->tfjobs.training_job_changed(key);
  };
  environment.watcher = this;
  environment.ask_progress = ask_progress;
  environment.boot_time = [this] { return BootTime(time.time_since_epoch()); };
  return environment;
}

Environment KubeWorld::environment_of_tfjobs() {
  Environment environment = this->environment();
  environment.wake = [this](const std::string& key, api::Time at) { wake_tfjob(key, at); };
  return environment;
}

KubeWorld::Operator::Operator(KubeWorld& world)
    : cluster(world.server,
              {pod_settings(world.allowed_accounts), http_peers(), 20, world.pods_at_a_time_},
              world.environment()),
      queued(cluster, world.server, cluster.jobs(), pod_settings(world.allowed_accounts),
             /*enabled=*/true, world.environment(), [&world] { return world.sees_queues; }),
      controller(
          queued, [&world](const auto& trouble) { world.troubles.push_back(trouble); }, {}, nullptr,
          [&world] { return controller::Moment(world.time.time_since_epoch()); },
          [] { return std::chrono::nanoseconds(0); }),
      tfjobs(world.server, cluster.jobs(), {TakenTfJobs::all, ""}, world.environment_of_tfjobs(),
             [&world](TfJobReconciler::Count count, const std::string&) {
               ++world.tfjobs_counted[count];
             }),
      tfjob_controller([this](const std::string& key) { return tfjobs.reconcile(key); },
                       [&world] { return world.time; },
                       [&world](const auto& trouble) { world.troubles.push_back(trouble); }, {},
                       nullptr,
                       [&world] { return controller::Moment(world.time.time_since_epoch()); },
                       [] { return std::chrono::nanoseconds(0); }) {
  world.server.list(cluster.jobs(), "trainingjobs");
  world.server.list(cluster.pods(), "pods");
  world.server.list(cluster.services(), "services");
  world.server.list(tfjobs.tfjobs(), "tfjobs");
  world.server.list(queued.workloads(), "workloads");
  world.server.list(queued.flavors(), "resourceflavors");
}

KubeWorld::KubeWorld(size_t pods_at_a_time) : pods_at_a_time_(pods_at_a_time) {
  server.permits = chart_rights({"muster", "muster-nodes"});
  restart_operator();
}

void KubeWorld::wake(const std::string& key, api::Time at) {
  if (at <= time) ++wakes;
  if (operator_)
    operator_->controller.wake(key, at);
  else
    early_wakes_.emplace_back(key, at);
}

void KubeWorld::wake_tfjob(const std::string& key, api::Time at) {
  if (operator_)
    operator_->tfjob_controller.wake(key, at);
  else
    early_wakes_of_tfjobs_.emplace_back(key, at);
}

void KubeWorld::restart_operator() {
  operator_.reset();
  operator_ = std::make_unique<Operator>(*this);
  for (const auto& [key, at] : early_wakes_) operator_->controller.wake(key, at);
  for (const auto& [key, at] : early_wakes_of_tfjobs_) operator_->tfjob_controller.wake(key, at);
  early_wakes_.clear();
  early_wakes_of_tfjobs_.clear();
}

std::optional<std::chrono::milliseconds> KubeWorld::Operator::work() {
  const auto of_tfjobs = tfjob_controller.work();
  const auto of_jobs = controller.work();
  if (!of_tfjobs || !of_jobs) return of_tfjobs ? of_tfjobs : of_jobs;
  return std::min(*of_tfjobs, *of_jobs);
}

void KubeWorld::take_over() {
  paused_.push_back(std::move(operator_));
  restart_operator();
}

void KubeWorld::submit(const std::string& name, const Json& more_of_spec, const Json& labels) {
  Json role = Json::parse(R"({"replicas": 1, "restartPolicy": "OnFailure", "replication": 1,
    "template": {"spec": {"containers": [{"name": "tensorflow", "image": "tf"}]}}})");
  Json ps = role;
  role.erase("replication");
  Json spec = {
      {"replicaSpecs", {{"ps", ps}, {"chief", role}, {"worker", role}, {"evaluator", role}}}};
  spec.merge_patch(more_of_spec);
  server.put(
      {{"apiVersion", "muster.dev/v1alpha1"},
       {"kind", "TrainingJob"},
       {"metadata", {{"name", name}, {"namespace", "lab"}, {"generation", 1}, {"labels", labels}}},
       {"spec", spec}});
}

void KubeWorld::settle() {
  for (int pass = 0; pass < kManyPasses; ++pass) {
    server.tell(cluster().jobs(), "trainingjobs");
    if (tells_of_pods) server.tell(cluster().pods(), "pods");
    server.tell(cluster().services(), "services");
    server.tell(operator_->tfjobs.tfjobs(), "tfjobs");
    if (tells_of_workloads) see_workloads();
    server.tell(operator_->queued.flavors(), "resourceflavors");
    const size_t before = server.calls().size();
    const auto next = operator_->work();
    if (server.calls().size() == before && (!next || *next > 0ms)) return;
  }
  ADD_FAILURE() << "the operator does not come to rest";
}

void KubeWorld::run_for(std::chrono::milliseconds how_long) {
  const api::Time until = time + how_long;
  for (int pass = 0; pass < kManyPasses; ++pass) {
    settle();
    const auto next = operator_->work();
    if (!next || time + *next > until) {
      time = until;
      return settle();
    }
    time += *next;
  }
  ADD_FAILURE() << "the operator does not come to rest";
}

std::string KubeWorld::condition(const std::string& type, const std::string& name) {
  const Json object = job(name);
  for (const Json& condition : member(member(object, "status"), "conditions")) {
    if (condition["type"] != type) continue;
    return condition["status"].get<std::string>() + " " + condition["reason"].get<std::string>();
  }
  return "";
}

std::string KubeWorld::pod(const std::string& replica, const std::string& job) {
  std::string newest;
  int attempt = -1;
  for (const Json& pod : server.objects("pods")) {
    const Json& labels = pod["metadata"]["labels"];
    const std::string name =
        string_or(labels, kRoleLabel, "") + "-" + string_or(labels, kIndexLabel, "");
    if (labels[kJobLabel] != job || name != replica || attempt_of(pod) <= attempt) continue;
    newest = pod["metadata"]["name"];
    attempt = attempt_of(pod);
  }
  if (newest.empty()) ADD_FAILURE() << "no pod of " << replica << " among: " << pods();
  return newest;
}

std::string KubeWorld::pods() {
  std::set<std::string> names;
  for (const Json& pod : server.objects("pods")) {
    const Json& labels = pod["metadata"]["labels"];
    if (!labels.contains(kRoleLabel)) continue;
    names.insert(labels[kRoleLabel].get<std::string>() + "-" +
                 labels[kIndexLabel].get<std::string>() + "." +
                 labels[kAttemptLabel].get<std::string>());
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

void KubeWorld::run_all() {
  for (const Json& pod : server.objects("pods")) {
    const bool ours = pod["metadata"]["labels"].contains(kRoleLabel);
    const bool leaving = pod["metadata"].contains("deletionTimestamp");
    if (ours && !leaving && pod["status"]["phase"] == "Pending") {
      server.run_pod(pod["metadata"]["name"]);
    }
  }
}

void KubeWorld::restarted(api::Role role, const std::string& reason, int times) {
  restarts += std::string(api::name_of(role)) + " " + reason + " " + std::to_string(times) + "; ";
}

void KubeWorld::took_first_step(std::chrono::milliseconds since_creation) {
  first_step = std::to_string(since_creation.count());
}

}  // namespace muster::kube
