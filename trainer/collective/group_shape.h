#pragma once

#include <vector>

#include "trainer/compute/tree_sum.h"

namespace muster::collective {

// How a step's work is divided. `replicas` logical replicas compute a step's batch. Each member has
// a run of consecutive replicas; the lengths of the runs differ by at most one. A member
// contributes the sums of as few nodes of the replicas' tree as cover its run, rounded or not
// (tree_sum.h).
struct GroupShape {
  static constexpr int kMostMembers = 4095;
  static constexpr int kMostReplicas = 1 << 20;

  int members = 1;
  int replicas = 1;  // at least 1
  bool rounded = false;

  compute::Subtree replicas_of(int member) const;
  std::vector<compute::Subtree> nodes_of(int member) const;
  std::vector<compute::Subtree> nodes() const;  // nodes of all members, in order
};

}  // namespace muster::collective
