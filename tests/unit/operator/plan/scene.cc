#include "tests/unit/operator/plan/scene.h"

#include <algorithm>

namespace muster::plan {
namespace {

bool is_alive(const ObservedReplica& replica) {
  return replica.phase == Phase::pending || replica.phase == Phase::running;
}

std::string name(Role role, int index) {
  return std::string(api::name_of(role)) + "-" + std::to_string(index);
}

void append(std::string& list, const std::string& word) {
  list += (list.empty() ? "" : " ") + word;
}

std::string sorted_names(const std::vector<ObservedReplica>& replicas, bool only_leaving) {
  std::vector<std::pair<Role, int>> keys;
  for (const ObservedReplica& replica : replicas) {
    if (is_alive(replica) && (!only_leaving || replica.deleting)) {
      keys.emplace_back(replica.role, replica.index);
    }
  }
  std::ranges::sort(keys);
  std::string list;
  for (auto [role, index] : keys) append(list, name(role, index));
  return list;
}

}  // namespace

Plan Scene::step() {
  Plan first = plan(job, view, now);
  carry_out(first, job, view);
  const Plan second = plan(job, view, now);
  EXPECT_EQ(actions_in(second, job.status), "") << "the plan of its own result is not empty";
  EXPECT_EQ(second.look_again, first.look_again);
  return first;
}

Plan Scene::step_after(double seconds) {
  now += std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  return step();
}

void Scene::start_all() {
  for (ObservedReplica& replica : view.replicas) {
    if (replica.phase != Phase::pending) continue;
    replica.phase = Phase::running;
    replica.ready = true;
    replica.started = now;
  }
}

void Scene::start() {
  step();
  start_all();
  step();
}

ObservedReplica& Scene::replica(Role role, int index) {
  ObservedReplica* found = nullptr;
  for (ObservedReplica& replica : view.replicas) {
    if (replica.role != role || replica.index != index) continue;
    if (!found || is_alive(replica)) found = &replica;
  }
  if (!found) throw std::runtime_error("the scene has no " + name(role, index));
  return *found;
}

bool Scene::lives(Role role, int index) const {
  return std::ranges::any_of(view.replicas, [&](const ObservedReplica& replica) {
    return replica.role == role && replica.index == index && is_alive(replica);
  });
}

void Scene::succeed(Role role, int index) {
  ObservedReplica& ended = replica(role, index);
  ended.phase = Phase::succeeded;
  ended.exit_code = 0;
  ended.finished = now;
  ended.ready = false;
}

void Scene::fail(Role role, int index, std::optional<int> code, const std::string& reason,
                 const std::string& last_line) {
  ObservedReplica& ended = replica(role, index);
  ended.phase = Phase::failed;
  ended.exit_code = code;
  ended.reason = reason;
  ended.last_line = last_line;
  ended.finished = now;
  ended.ready = false;
}

void Scene::leave_all(int code) {
  for (ObservedReplica& replica : view.replicas) {
    if (!replica.deleting || !is_alive(replica)) continue;
    replica.phase = code == 0 ? Phase::succeeded : Phase::failed;
    replica.exit_code = code;
    replica.finished = now;
    replica.ready = false;
  }
}

std::string Scene::live() const {
  return sorted_names(view.replicas, false);
}
std::string Scene::leaving() const {
  return sorted_names(view.replicas, true);
}

const api::Condition& Scene::condition(const std::string& type) const {
  const api::Condition* found = job.status.find(type);
  if (!found) throw std::runtime_error("the job has no condition " + type);
  return *found;
}

const api::ReplicaRecord& Scene::record(Role role, int index) const {
  for (const api::ReplicaRecord& record : job.status.records) {
    if (record.role == role && record.index == index) return record;
  }
  throw std::runtime_error("the status has no record of " + name(role, index));
}

std::string created(const Plan& plan) {
  std::string list;
  for (const CreateReplica& creation : plan.create) {
    append(list, name(creation.role, creation.index) + "." + std::to_string(creation.attempt));
  }
  return list;
}

}  // namespace muster::plan
