#include "operator/api/notes.h"

#include <fmt/format.h>

#include "common/documents/json.h"
#include "operator/api/pod_template.h"
#include "operator/api/templates.h"

namespace muster::api {

namespace {

constexpr const char* kTraining = "spec.training";

class Notes {
 public:
  explicit Notes(const Document& document)
      : document_(document), spec_(member(document.value(), "spec")) {}

  std::vector<std::string> take() {
    notes_ = template_notes(document_);
    for (const char* role : {"chief", "master", "worker"}) look_for_idle_gpus(role);
    look_for_settings_without_effect();
    return std::move(notes_);
  }

 private:
  const Json& training() const { return member(spec_, "training"); }
  const Json& role(const char* name) const { return member(member(spec_, "replicaSpecs"), name); }

  void add(const std::string& field, const std::string& note) {
    const std::string path = std::string(kTraining) + "." + field;
    notes_.push_back(document_.locate(path) + ": " + path + ": " + note);
  }

  void look_for_idle_gpus(const char* name) {
    const int64_t devices = integer_or(training(), "devices", 0);
    const int asked = asked_gpus(counting_container(member(role(name), "template")));
    if (devices == 0 || asked <= devices) return;
    add("devices", fmt::format("{} uses {} of the {} {} that its template asks for; auto uses all",
                               name, devices, asked, kGpus));
  }

  void look_for_settings_without_effect() {
    const bool has_ps = !role("ps").is_null();
    if (!has_ps && string_or(training(), "psDevice", "cpu") == "cuda")
      add("psDevice", "cuda has no effect: the job has no ps");
    const std::string nccl = string_or(member(training(), "synchronization"), "nccl", "auto");
    if (has_ps && nccl != "auto") {
      add("synchronization.nccl",
          nccl +
              " has no effect: the job has parameter servers, which replicas do not reach by NCCL");
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
