#include "operator/kube/api/objects.h"

#include <algorithm>

namespace muster::kube {

std::string ObjectMeta::label(const std::string& key) const {
  const auto found = labels.find(key);
  return found == labels.end() ? "" : found->second;
}

const PodCondition* Pod::condition(const std::string& type) const {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [&](const PodCondition& one) { return one.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

}  // namespace muster::kube
