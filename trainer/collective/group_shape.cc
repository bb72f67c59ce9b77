#include "trainer/collective/group_shape.h"

#include <cstdint>

namespace muster::collective {

compute::Subtree GroupShape::replicas_of(int member) const {
  const auto border = [&](int64_t m) { return static_cast<int>(replicas * m / members); };
  return {border(member), border(member + 1)};
}

std::vector<compute::Subtree> GroupShape::nodes_of(int member) const {
  const compute::Subtree own = replicas_of(member);
  return compute::cover(replicas, own.begin, own.end);
}

std::vector<compute::Subtree> GroupShape::nodes() const {
  std::vector<compute::Subtree> all;
  for (int member = 0; member < members; ++member)
    for (const compute::Subtree& node : nodes_of(member)) all.push_back(node);
  return all;
}

}  // namespace muster::collective
