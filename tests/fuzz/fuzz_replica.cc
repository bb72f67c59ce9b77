#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "operator/api/status.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/pods/observe.h"
#include "operator/plan/plan.h"

using namespace muster;

// A job's pods as a list of the API server shows them: what their containers, kubelets and users
// have written into them, termination messages too, is planned with, twice. A status comes back
// from its JSON without loss.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  kube::Store<kube::Pod> store("muster.dev/job");
  try {
    store.begin_list();
    store.add_page({reinterpret_cast<const char*>(bytes), size});
    store.end_list();
  } catch (const Unavailable&) {
    return 0;
  }
  api::TrainingJob job;
  job.name = "mnist";
  job.name_space = "lab";
  job.uid = "uid";
  job.training = {{"epochs", 1}};
  for (const api::Role role : {api::Role::ps, api::Role::chief, api::Role::worker})
    job.replicas[role].pod_template = Json::object();
  std::vector<kube::Pod> pods;
  for (const std::string& key : store.keys()) pods.push_back(*store.get(key));
  constexpr api::Time kNow(std::chrono::hours(24 * 365 * 56));
  for (const bool node_lost : {false, true}) {
    plan::Observed observed;
    for (const kube::Pod& pod : pods) {
      if (auto replica = kube::observe(pod, node_lost)) observed.replicas.push_back(*replica);
      kube::final_progress(pod);
      if (kube::seems_lost(pod) && !kube::is_suspect(pod)) __builtin_trap();
    }
    observed.results = kube::final_results(job, pods);
    job.status = plan::plan(job, observed, kNow).status;
    if (api::to_job_status(api::to_json(job.status)) != job.status) __builtin_trap();
  }
  return 0;
}
