#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "operator/api/training_job.h"
#include "operator/kube/api/packed_text.h"

namespace muster::kube {

using api::Time;

// Objects as they are kept in view: only the fields that decisions need.

struct ObjectMeta {
  std::string name;
  std::string name_space;
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  std::optional<Time> created;
  std::optional<Time> deleted;    // deletionTimestamp: the latest time at which the object is gone
  std::chrono::seconds grace{0};  // time from the request to leave until `deleted`
  std::map<std::string, std::string> labels;
  std::vector<std::string> finalizers;
  std::string owner_uid;           // UID of the controller among the owners; "" if none
  std::string checkpoint_request;  // api::kCheckpointAnnotation; "" if none
  // Returns "<namespace>/<name>".
  std::string key() const { return name_space + "/" + name; }
  std::string label(const std::string& key) const;  // "" where there is none
};

struct ContainerStatus {
  enum class State { waiting, running, terminated };
  std::string name;
  State state = State::waiting;
  bool ready = false;
  int restarts = 0;
  std::string reason;   // why it is waiting or terminated: CrashLoopBackOff, OOMKilled, ...
  std::string message;  // for a terminated container the end of its log
  std::optional<int> exit_code;  // set if terminated
  std::optional<Time> started, finished;
  // The end of the container before its last restart.
  std::optional<int> last_exit_code;
  std::string last_message;
};

struct PodCondition {
  std::string type;  // Ready, PodScheduled, DisruptionTarget, ...
  bool status = false;
  std::string reason;
  std::string message;
  std::optional<Time> last_transition;
};

struct Pod {
  ObjectMeta meta;
  std::string node;            // "" until it is scheduled
  std::string restart_policy;  // Always, OnFailure, Never
  std::string ip;
  std::string phase;   // Pending, Running, Succeeded, Failed, Unknown
  std::string reason;  // Evicted, NodeLost, ...
  std::string message;
  std::vector<PodCondition> conditions;
  std::vector<ContainerStatus> container_statuses;
  std::vector<ContainerStatus> init_container_statuses;
  const PodCondition* condition(const std::string& type) const;
};

struct Service {
  ObjectMeta meta;
};

// An object kept whole, except metadata.managedFields: a TrainingJob. It is kept packed, because
// there may be a hundred thousand, and a Json takes many times as much memory.
struct WholeObject {
  ObjectMeta meta;
  PackedText content;
  Json json() const { return Json::parse(content.text()); }
};

}  // namespace muster::kube
