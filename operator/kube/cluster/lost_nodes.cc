#include "operator/kube/cluster/lost_nodes.h"

#include "common/program/log.h"
#include "operator/kube/pods/observe.h"

namespace muster::kube {

namespace {

Resource nodes() {
  return {"", "v1", "nodes", "Node"};
}

}  // namespace

LostNodes::Answer LostNodes::ask(const std::string& node) const {
  try {
    const auto object = client_.get(nodes(), {"", node});
    return !object || is_unreachable(*object) ? Answer::lost : Answer::lives;
  } catch (const ApiUnavailable& error) {
    if (error.status().code != 403) throw;
    log::debug("node " + node + ": " + error.what());
    return Answer::unknown;
  }
}

bool LostNodes::has_lost(const Pod& pod, Time now) {
  Answer answer = Answer::unknown;
  {
    const MutexLock lock(mutex_);
    std::erase_if(answers_, [&](const auto& entry) { return now - entry.second.second > kKept; });
    const auto known = answers_.find(pod.node);
    if (known != answers_.end()) answer = known->second.first;
  }
  if (answer == Answer::unknown) {
    answer = ask(pod.node);
    const MutexLock lock(mutex_);
    answers_[pod.node] = {answer, now};
  }
  if (answer != Answer::unknown) return answer == Answer::lost;
  return seems_lost(pod) || (pod.meta.deleted && now > *pod.meta.deleted);
}

}  // namespace muster::kube
