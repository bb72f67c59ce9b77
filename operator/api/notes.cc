#include "operator/api/notes.h"

#include <fmt/format.h>

#include <algorithm>

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
    compare_gpus();
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

  void compare_gpus() {
    if (!training().is_object()) return;
    const bool on_cpu = string_or(training(), "device", "auto") == "cpu";
    const bool takes_all = member(training(), "devices") == kAllDevices;
    for (const char* name : {"chief", "master", "worker"}) {
      const int asked = asked_by(name);
      const int most = std::min(asked, kMostDevices);
      int64_t used = takes_all ? most : integer_or(training(), "devices", 1);
      if (on_cpu) used = 0;
      const bool hint = !on_cpu && !takes_all && most == asked;
      compare(name, asked, used, hint ? "; spec.training.devices: auto uses all" : "");
    }
    compare("evaluator", asked_by("evaluator"), on_cpu ? 0 : 1, "");
    const bool ps_too = string_or(training(), "psDevice", "cpu") == "cuda";
    compare("ps", asked_by("ps"), ps_too ? 1 : 0, "");
  }

  int asked_by(const char* name) const {
    return asked_gpus(counting_container(member(role(name), "template")));
  }

  void compare(const char* name, int asked, int64_t used, const char* hint) {
    if (asked == 0 || asked == used) return;
    const std::string path = std::string("spec.replicaSpecs.") + name + ".template";
    if (asked > used)
      add(path, fmt::format("uses {} of the {} {} that it asks for{}", used, asked, kGpus, hint));
    else
      add(path, fmt::format("asks for {} of the {} {} that it computes on", asked, used, kGpus));
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
