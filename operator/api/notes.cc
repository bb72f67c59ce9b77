#include "operator/api/notes.h"

#include <fmt/format.h>

#include "common/documents/json.h"
#include "operator/api/pod_template.h"
#include "operator/api/templates.h"

namespace muster::api {

namespace {

class Notes {
 public:
  explicit Notes(const Document& document)
      : document_(document), spec_(member(document.value(), "spec")) {}

  std::vector<std::string> take() {
    notes_ = template_notes(document_);
    look_for_idle_gpus();
    look_for_settings_without_effect();
    return std::move(notes_);
  }

 private:
  const Json& training() const { return member(spec_, "training"); }
  // Returns a role's object; null if it has no replicas.
  const Json& role(const char* name) const {
    static const Json none;
    const Json& found = member(member(spec_, "replicaSpecs"), name);
    return integer_or(found, "replicas", 1) == 0 ? none : found;
  }

  void add(const std::string& path, const std::string& note) {
    notes_.push_back(document_.locate(path) + ": " + path + ": " + note);
  }

  void look_for_idle_gpus() {
    if (!training().is_object()) return;
    const bool on_cpu = string_or(training(), "device", "auto") == "cpu";
    const int64_t devices = integer_or(training(), "devices", kMostDevices);
    for (const char* name : {"chief", "master", "worker"})
      compare(name, on_cpu ? 0 : devices, on_cpu ? "" : "; spec.training.devices: auto uses all");
    compare("evaluator", on_cpu ? 0 : 1, "");
    compare("ps", string_or(training(), "psDevice", "cpu") == "cuda" ? 1 : 0, "");
  }

  void compare(const char* name, int64_t used, const char* hint) {
    const Json& pod_template = member(role(name), "template");
    const int asked = asked_gpus(counting_container(pod_template));
    if (asked <= used) return;
    add(std::string("spec.replicaSpecs.") + name + ".template",
        fmt::format("uses {} of the {} {} that it asks for{}", used, asked, kGpus, hint));
  }

  void look_for_settings_without_effect() {
    const bool has_ps = role("ps").is_object();
    if (!has_ps && string_or(training(), "psDevice", "cpu") == "cuda")
      add("spec.training.psDevice", "cuda has no effect: the job has no ps");
    const std::string nccl = string_or(member(training(), "synchronization"), "nccl", "auto");
    if (has_ps && nccl != "auto") {
      add("spec.training.synchronization.nccl",
          nccl + " has no effect: GPUs do not reach parameter servers by NCCL");
    }
  }

  const Document& document_;
  const Json& spec_;
  std::vector<std::string> notes_;
};

}  // namespace

std::vector<std::string> job_notes(const Document& document) {
  return Notes(document).take();
}

}  // namespace muster::api
