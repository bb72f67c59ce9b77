#include "operator/api/templates.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/documents/json.h"
#include "common/text/nearest.h"
#include "common/text/whole_number.h"
#include "common/variables.h"
#include "operator/api/pod_template.h"

namespace muster::api {

namespace {

constexpr int kMostGpus = 1 << 20;  // limit for each container

const Json& containers_of(const Json& pod_template) {
  return member(member(pod_template, "spec"), "containers");
}

// Returns the container with the first of these names that a container has. Without one: the only
// container, or null.
const Json& first_of(const Json& pod_template, std::initializer_list<const char*> names) {
  static const Json none;
  const Json& containers = containers_of(pod_template);
  if (!containers.is_array()) return none;
  for (const char* name : names) {
    for (const Json& container : containers) {
      if (string_or(container, "name", "") == name) return container;
    }
  }
  return containers.size() == 1 ? containers[0] : none;
}

class Checker {
 public:
  Checker(const Document& document, Problems& problems)
      : document_(document), problems_(problems) {}

  void run() {
    const Json* spec = document_.find("spec");
    if (spec == nullptr) return;
    // A `training` block that was probably meant to be there counts as present.
    const bool training =
        !member(*spec, "training").is_null() || !problems_.is_sound("spec.training");
    const Json& roles = member(*spec, "replicaSpecs");
    for (const char* role : {"ps", "chief", "master", "worker", "evaluator"}) {
      const Json& replica = member(roles, role);
      if (!replica.is_object()) continue;
      check(member(replica, "template"), std::string("spec.replicaSpecs.") + role + ".template",
            training);
    }
    check_devices(member(*spec, "training"), roles);
  }

 private:
  // With `devices: auto` the templates say how many GPUs a replica has, and all replicas that train
  // must have the same number. With `device: cuda` the operator asks for `devices` GPUs where a
  // template asks for none.
  void check_devices(const Json& training, const Json& roles) {
    const std::string device = string_or(training, "device", "auto");
    if (member(training, "devices") != kAllDevices || device == "cpu") return;
    std::optional<std::pair<std::string, int>> first;
    for (const char* role : {"chief", "master", "worker"}) {
      const Json& replica = member(roles, role);
      if (!replica.is_object() || integer_or(replica, "replicas", 1) == 0) continue;
      const Json& container = counting_container(member(replica, "template"));
      if (device == "cuda" && !asks_for_nvidia(container)) continue;
      const int asked = asked_gpus(container);
      if (first && first->second != asked) {
        problems_.report(
            "spec.training.devices",
            std::string("a number, or as many ") + kGpus + " in the template of " + role +
                " as in that of " + first->first,
            "auto, with " + std::to_string(asked) + " and " + std::to_string(first->second));
        return;
      }
      first = {role, asked};
    }
  }

  void check(const Json& pod_template, const std::string& path, bool training) {
    const Json& containers = containers_of(pod_template);
    const std::string containers_path = path + ".spec.containers";
    if (!problems_.is_sound(containers_path)) return;
    if (!containers.is_array() || containers.empty()) {
      if (!training) {
        problems_.report(containers_path, "a container to run, for the job has no spec.training",
                         "none");
      }
      return;
    }
    const Json& container = counting_container(pod_template);
    if (container.is_null()) {
      for (size_t i = 0; i < containers.size(); ++i) {
        if (!problems_.is_sound(child_path(containers_path, i) + ".name")) return;
      }
      problems_.report(
          containers_path,
          "one of the containers to be named trainer or tensorflow: the one whose end decides",
          std::to_string(containers.size()) + " containers of other names");
      return;
    }
    const auto index = static_cast<size_t>(&container - &containers[0]);
    if (training) check_name(container, child_path(containers_path, index));
    check_container(container, child_path(containers_path, index), training);
  }

  // A container with its own program may run beside the trainer or replace it; only the container's
  // name tells which.
  void check_name(const Json& container, const std::string& path) {
    const std::string name = string_or(container, "name", "");
    const bool has_program =
        container.contains("image") || container.contains("command") || container.contains("args");
    if (name == "trainer" || name == "tensorflow" || !has_program) return;
    problems_.report(
        path + ".name", "trainer, for the job has spec.training and this is the only container",
        "'" + name + "'", "to run it beside the trainer, add {name: trainer} to the containers");
  }

  void check_container(const Json& container, const std::string& path, bool training) {
    const Json& command = member(container, "command");
    const bool has_command = !command.is_null() && !(command.is_array() && command.empty());
    const bool can_be_read =
        problems_.is_sound(path + ".command") && problems_.is_sound(path + ".image");
    if (!training && !has_command && can_be_read && string_or(container, "image", "").empty()) {
      problems_.report(path, "a command or an image, for the job has no spec.training", "neither");
    }
    const Json& env = member(container, "env");
    for (size_t i = 0; i < env.size(); ++i) {
      const Json& entry = env.is_array() ? env[i] : env;
      const std::string name = string_or(entry, "name", "");
      if (is_reserved(name)) {
        problems_.report(child_path(path + ".env", i) + ".name",
                         "a variable other than TF_CONFIG and MUSTER_*, which Muster sets",
                         "'" + name + "'");
      }
    }
    if (!container.is_object()) return;
    for (const auto& [key, unused] : container.items()) {
      const std::string near = nearest(key, container_fields());
      if (near.empty() || near == key) continue;
      problems_.report(child_path(path, key), "a field of a container",
                       "the unknown field \"" + key + "\"", "did you mean " + near + "?");
    }
  }

  const Document& document_;
  Problems& problems_;
};

}  // namespace

bool is_reserved(const std::string& variable) {
  if (variable != "TF_CONFIG" && !variable.starts_with("MUSTER_")) return false;
  const auto known = std::ranges::find(variables(), variable, &Variable::name);
  return known == variables().end() || known->setter != Setter::user;
}

std::chrono::seconds grace_of(const Json& pod_template) {
  // Longer than any grace that a person would wait for; keeps hostile numbers out of arithmetic.
  constexpr int64_t kLongest = 24 * 3600;
  const Json& spec = member(pod_template, "spec");
  const int64_t grace = integer_or(spec, "terminationGracePeriodSeconds", kGraceSeconds);
  return std::chrono::seconds(std::clamp<int64_t>(grace, 0, kLongest));
}

const Json& counting_container(const Json& pod_template) {
  return first_of(pod_template, {"trainer", "tensorflow"});
}

const Json& counting_container(const TrainingJob& job, Role role) {
  const Json& pod_template = job.replicas.at(role).pod_template;
  if (job.tfjob.name.empty()) return counting_container(pod_template);
  return first_of(pod_template, {"tensorflow", "trainer"});
}

bool asks_for_nvidia(const Json& container) {
  const Json& resources = member(container, "resources");
  for (const char* kind : {"limits", "requests"}) {
    for (const auto& [name, value] : member(resources, kind).items())
      if (name.starts_with("nvidia.com/")) return true;
  }
  return false;
}

int asked_gpus(const Json& container) {
  const Json& resources = member(container, "resources");
  for (const char* kind : {"limits", "requests"}) {
    const Json& asked = member(member(resources, kind), kGpus);
    if (asked.is_number_integer())
      return static_cast<int>(std::clamp<int64_t>(asked.get<int64_t>(), 0, kMostGpus));
    if (asked.is_string())
      return whole_number<int>(asked.get_ref<const std::string&>(), 0, kMostGpus).value_or(0);
  }
  return 0;
}

void check_templates(const Document& document, Problems& problems) {
  Checker(document, problems).run();
}

}  // namespace muster::api
