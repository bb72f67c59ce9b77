#include "operator/kube/pods/observe.h"

#include <algorithm>
#include <utility>

#include "common/documents/json.h"
#include "common/job/termination_message.h"
#include "common/text/whole_number.h"
#include "operator/api/progress.h"
#include "operator/api/status.h"
#include "operator/kube/pods/names.h"
#include "operator/plan/failure.h"

namespace muster::kube {

namespace {

using plan::ObservedReplica;
using State = ContainerStatus::State;

// The request to end a pod may seem later than its end by so much. Times are in whole seconds; the
// end is timed by the node's clock, the request by the API server's clock.
constexpr std::chrono::seconds kSlack(1);

// The largest accepted number in a label. Anybody may write labels, and numbers counted on from one
// must not overflow. No real job gets this far.
constexpr int kLargestNumber = 1'000'000'000;

bool identify(const Pod& pod, ObservedReplica& replica) {
  const auto number = [&](const char* label) {
    return whole_number<int>(pod.meta.label(label), 0, kLargestNumber);
  };
  const auto role = api::role_of(pod.meta.label(kRoleLabel));
  const auto index = number(kIndexLabel);
  const auto attempt = number(kAttemptLabel);
  const auto run = number(kRunLabel);
  if (!role || !index || !attempt || !run) return false;
  replica.role = *role;
  replica.index = *index;
  replica.attempt = *attempt;
  replica.run = *run;
  replica.uid = pod.meta.uid;
  replica.deleting = pod.meta.deleted.has_value();
  replica.node = pod.node;
  return true;
}

const ContainerStatus* deciding_status(const Pod& pod) {
  const auto found = std::ranges::find(pod.container_statuses, pod.meta.label(kContainerLabel),
                                       &ContainerStatus::name);
  return found == pod.container_statuses.end() ? nullptr : &*found;
}

// Whether the container is terminated and the kubelet will not start it again.
bool is_final(const Pod& pod, const ContainerStatus& status) {
  if (status.state != State::terminated) return false;
  const bool restarted = pod.restart_policy != "Never" && status.exit_code != 0;
  return !restarted || pod.meta.deleted.has_value();
}

bool is_true(const Pod& pod, const char* type) {
  const PodCondition* condition = pod.condition(type);
  return condition != nullptr && condition->status;
}

// Whether the node controller has marked the pod as not ready. A living kubelet would also mark the
// containers.
bool is_called_not_ready(const Pod& pod) {
  const PodCondition* ready = pod.condition("Ready");
  return ready != nullptr && !ready->status && is_true(pod, "ContainersReady");
}

const PodCondition* disruption(const Pod& pod) {
  const PodCondition* condition = pod.condition("DisruptionTarget");
  return condition != nullptr && condition->status ? condition : nullptr;
}

bool is_removed_by_taint(const Pod& pod) {
  const PodCondition* condition = disruption(pod);
  return condition != nullptr && condition->reason == "DeletionByTaintManager";
}

std::string reason_of_disruption(const std::string& of_condition, const std::string& of_pod) {
  if (of_pod == "NodeLost" || of_condition == "DeletionByPodGC") return "NodeLost";
  if (of_pod == "Preempting" || of_condition == "PreemptionByScheduler") return "Preempted";
  return "Evicted";
}

// Returns when the pod was asked to leave, also if somebody shortens the grace period later.
std::optional<Time> asked_to_leave(const Pod& pod) {
  if (!pod.meta.deleted) return std::nullopt;
  return *pod.meta.deleted - pod.meta.grace;
}

bool ended_before(const ContainerStatus& status, const std::optional<Time>& time) {
  return status.state == State::terminated && status.finished && time &&
         *status.finished + kSlack < *time;
}

// Returns the reason of an end that came from outside and is nobody's fault, or "".
std::string disruption_of(const Pod& pod, const ContainerStatus* status, bool node_lost) {
  if (node_lost) return "NodeLost";
  const PodCondition* condition = disruption(pod);
  if (condition != nullptr) {
    // A replica that had ended by itself before the disruption was not disrupted.
    const bool over = status != nullptr && ended_before(*status, condition->last_transition);
    return over ? "" : reason_of_disruption(condition->reason, pod.reason);
  }
  for (const char* reason : {"Evicted", "NodeLost", "Preempting"}) {
    if (pod.reason == reason) return reason_of_disruption("", reason);
  }
  // The kubelet of a node that shuts down gives these reasons.
  return pod.reason == "Terminated" || pod.reason == "NodeShutdown" ? "Evicted" : "";
}

const ContainerStatus* failed_init_container(const Pod& pod) {
  const auto failed = [](const ContainerStatus& status) {
    return status.state == State::terminated && status.exit_code.value_or(0) != 0;
  };
  const auto found = std::ranges::find_if(pod.init_container_statuses, failed);
  return found == pod.init_container_statuses.end() ? nullptr : &*found;
}

// Returns Kubernetes' own reason if the reason says more than that the replica ended.
std::string reason_of_end(const Pod& pod, const ContainerStatus* status) {
  if (status != nullptr && status->state == State::terminated) {
    const bool says_nothing = status->reason == "Error" || status->reason == "Completed";
    return says_nothing ? "" : status->reason;
  }
  if (!pod.reason.empty()) return pod.reason;
  return failed_init_container(pod) != nullptr ? "InitContainerFailed" : "";
}

struct Obstacle {
  std::string reason;  // "": there is none
  std::string words;
};

Obstacle obstacle_in(const ContainerStatus& status) {
  if (status.state != State::waiting) return {};
  if (status.reason == "ContainerCreating" || status.reason == "PodInitializing") return {};
  // The two reasons alternate, and mean the same.
  const bool pulling = status.reason == "ErrImagePull";
  return {pulling ? "ImagePullBackOff" : status.reason, status.message};
}

// Returns why a living pod does not run.
Obstacle obstacle_of(const Pod& pod, const ContainerStatus* status) {
  const PodCondition* scheduled = pod.condition("PodScheduled");
  if (scheduled != nullptr && !scheduled->status && !scheduled->reason.empty()) {
    return {scheduled->reason, scheduled->message};
  }
  if (status == nullptr || status->state != State::waiting) return {};
  if (Obstacle own = obstacle_in(*status); !own.reason.empty()) return own;
  for (const ContainerStatus& init : pod.init_container_statuses) {
    if (Obstacle obstacle = obstacle_in(init); !obstacle.reason.empty()) return obstacle;
  }
  return {};
}

void observe_end(const Pod& pod, const ContainerStatus* status, bool node_lost,
                 ObservedReplica& replica) {
  const bool terminated = status != nullptr && status->state == State::terminated && !node_lost;
  if (terminated) {
    replica.exit_code = status->exit_code;
    replica.started = status->started;
    replica.finished = status->finished;
  } else if (status != nullptr && status->state == State::running) {
    replica.started = status->started;
  }
  replica.reason = disruption_of(pod, status, node_lost);
  const bool thrown_out = !replica.reason.empty() && pod.phase == "Failed";
  const bool succeeded =
      terminated ? status->exit_code == 0 && !thrown_out : pod.phase == "Succeeded" && !node_lost;
  replica.phase = succeeded ? plan::Phase::succeeded : plan::Phase::failed;
  replica.ended_first =
      replica.deleting && terminated && ended_before(*status, asked_to_leave(pod));
  if (replica.reason.empty()) replica.reason = reason_of_end(pod, status);
}

void observe_life(const Pod& pod, const ContainerStatus* status, ObservedReplica& replica) {
  Obstacle obstacle = obstacle_of(pod, status);
  replica.reason = std::move(obstacle.reason);
  replica.explanation = std::move(obstacle.words);
  if (status == nullptr) return;
  if (status->last_exit_code) replica.exit_code = status->last_exit_code;
  if (status->state == State::terminated) {
    replica.exit_code = status->exit_code;  // the container is about to be restarted
  } else if (status->state == State::running) {
    replica.phase = plan::Phase::running;
    replica.started = status->started;
    replica.ready = status->ready && !is_called_not_ready(pod);
  } else if (status->restarts > 0) {
    replica.phase = plan::Phase::running;
  }
}

// Returns "init container fetch ended with exit code 3: not found".
std::string words_of_init_container(const ContainerStatus& init) {
  const std::string words = TerminationMessage::parse(init.message).message;
  return "init container " + init.name + " ended with exit code " +
         std::to_string(init.exit_code.value_or(0)) + (words.empty() ? "" : ": " + words);
}

void read_last_words(const Pod& pod, const ContainerStatus* status, ObservedReplica& replica) {
  if (status != nullptr) {
    const bool terminated = status->state == State::terminated;
    const TerminationMessage words =
        TerminationMessage::parse(terminated ? status->message : status->last_message);
    replica.restarts = status->restarts + words.restarts;
    replica.last_line = words.message;
  }
  const bool over = replica.phase == plan::Phase::failed;
  if (replica.last_line.empty() && over) {
    const ContainerStatus* init = failed_init_container(pod);
    replica.last_line =
        pod.message.empty() && init != nullptr ? words_of_init_container(*init) : pod.message;
  }
}

}  // namespace

std::optional<ObservedReplica> observe(const Pod& pod, bool node_lost) {
  ObservedReplica replica;
  if (!identify(pod, replica)) return std::nullopt;
  const ContainerStatus* status = deciding_status(pod);
  const bool never_placed = replica.deleting && pod.node.empty();
  const bool over =
      has_ended(pod) || (status != nullptr && is_final(pod, *status)) || never_placed || node_lost;
  if (over) {
    observe_end(pod, status, node_lost && !has_ended(pod), replica);
  } else {
    observe_life(pod, status, replica);
  }
  read_last_words(pod, status, replica);
  return replica;
}

Json final_progress(const Pod& pod) {
  const ContainerStatus* status = deciding_status(pod);
  if (status == nullptr || !is_final(pod, *status) || status->exit_code != 0) return {};
  Json said = TerminationMessage::parse(status->message).progress;
  return said.is_object() ? said : Json();
}

Json final_results(const api::TrainingJob& job, const std::vector<Pod>& pods) {
  Json of_leader, of_evaluator;
  int leader_attempt = -1, evaluator_attempt = -1;
  for (const Pod& pod : pods) {
    ObservedReplica replica;
    const ContainerStatus* status = deciding_status(pod);
    if (!identify(pod, replica) || status == nullptr || !is_final(pod, *status)) continue;
    const bool leads = plan::leads(job, replica.role, replica.index) && status->exit_code == 0;
    if (!leads && replica.role != api::Role::evaluator) continue;
    int& newest = leads ? leader_attempt : evaluator_attempt;
    if (replica.attempt < newest) continue;
    newest = replica.attempt;
    (leads ? of_leader : of_evaluator) = TerminationMessage::parse(status->message).results;
  }
  const Json& step = member(of_leader, "exportedStep");
  const bool agree = !step.is_null() && step == member(of_evaluator, "exportedStep");
  if (agree) of_leader.update(of_evaluator);
  Json results = api::results_of(of_leader);
  // Files in a volume that belonged to the pod no longer exist.
  if (api::loses_files(job) && results.is_object())
    for (const char* file : {"checkpoint", "model", "onnx"}) results.erase(file);
  return results;
}

bool is_suspect(const Pod& pod) {
  if (!pod.meta.deleted || has_ended(pod) || pod.node.empty()) return false;
  return is_removed_by_taint(pod) || is_called_not_ready(pod);
}

bool seems_lost(const Pod& pod) {
  return is_suspect(pod) && is_removed_by_taint(pod) && is_called_not_ready(pod);
}

bool is_unreachable(const Json& node) {
  for (const Json& condition : member(member(node, "status"), "conditions")) {
    if (string_or(condition, "type", "") == "Ready") {
      if (string_or(condition, "status", "") == "Unknown") return true;
    }
  }
  for (const Json& taint : member(member(node, "spec"), "taints")) {
    if (string_or(taint, "key", "") == "node.kubernetes.io/unreachable") return true;
  }
  return false;
}

bool outlives_replica(const Pod& pod) {
  const ContainerStatus* status = deciding_status(pod);
  if (has_ended(pod) || pod.meta.deleted || status == nullptr || !is_final(pod, *status)) {
    return false;
  }
  // A kubelet reports the end of the last container before the end of the pod.
  const auto goes_on = [](const ContainerStatus& other) {
    return other.state != State::terminated;
  };
  return std::ranges::any_of(pod.container_statuses, goes_on);
}

bool was_ready(const Pod& pod) {
  const ContainerStatus* status = deciding_status(pod);
  return status != nullptr && status->state == State::running && status->ready;
}

int restarts_of_container(const Pod& pod) {
  const ContainerStatus* status = deciding_status(pod);
  return status == nullptr ? 0 : status->restarts;
}

bool has_ended(const Pod& pod) {
  return pod.phase == "Succeeded" || pod.phase == "Failed";
}

bool is_tracked(const Pod& pod) {
  return std::ranges::find(pod.meta.finalizers, kTrackingFinalizer) != pod.meta.finalizers.end();
}

bool is_current(const Pod& pod) {
  return pod.meta.label(kCurrentLabel) == "true";
}

}  // namespace muster::kube
