#include "operator/kube/cluster/release.h"

#include "common/threads/mutex.h"
#include "operator/kube/api/codec.h"
#include "operator/kube/cluster/parallel.h"
#include "operator/kube/cluster/pod_writer.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/observe.h"

namespace muster::kube {

namespace {

constexpr int kPage = 200;

// Returns why the pod is still tracked; "" if it is not, or has gone.
std::string release(const Client& client, const Pod& pod) {
  const ObjectName name{pod.meta.name_space, pod.meta.name};
  try {
    client.patch(pods(), name, PatchKind::json, untracking_patch(pod), {pod.meta.uid, ""});
  } catch (const ApiUnavailable& error) {
    if (!error.status().not_found()) return error.what();
  } catch (const ApiInvalid& error) {
    return error.what();
  }
  return "";
}

}  // namespace

Release release_pods(const Client& client, const std::string& name_space, int at_a_time) {
  ListOptions options;
  options.label_selector = kJobLabel;
  options.limit = kPage;
  Release result;
  client.list_pages(pods(), name_space, options, [&](const std::vector<Json>& page) {
    std::vector<Pod> tracked;
    for (const Json& item : page) {
      Pod pod = decode_object<Pod>(item.dump());
      if (is_tracked(pod)) tracked.push_back(std::move(pod));
    }
    Mutex mutex;  // guards result
    in_parallel(tracked.size(), static_cast<size_t>(at_a_time), [&](size_t i) {
      const std::string trouble = release(client, tracked[i]);
      const MutexLock lock(mutex);
      ++result.tracked;
      if (trouble.empty()) {
        ++result.released;
      } else if (result.trouble.empty()) {
        result.trouble = trouble;
      }
    });
  });
  return result;
}

}  // namespace muster::kube
