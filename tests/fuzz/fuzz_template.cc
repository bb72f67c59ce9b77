#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/documents/json.h"
#include "common/error.h"
#include "operator/kube/pods/pods.h"

using namespace muster;

// A pod template, of any types: its schema is the API server's to check.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const Json value = parse_or_null({reinterpret_cast<const char*>(bytes), size});
  if (!value.is_object()) return 0;
  api::TrainingJob job;
  job.name = "mnist";
  job.name_space = "lab";
  job.uid = "uid";
  job.replicas[api::Role::worker].pod_template = value;
  for (const char* kind : {"", "of a TFJob", "trains"}) {
    job.tfjob.name = *kind == 'o' ? "mnist" : "";
    if (*kind == 't') job.training = {{"epochs", 1}};
    try {
      kube::services_of(job);
      const Json pod = kube::pod_of(job, {api::Role::worker, 0, 0, 0}, {});
      kube::refusal_of(kube::elsewhere(job, pod), {});
      kube::template_key(pod);
    } catch (const Invalid&) {
    }
  }
  return 0;
}
