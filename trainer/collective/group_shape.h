#pragma once

#include <vector>

#include "trainer/compute/tree_sum.h"

namespace muster::collective {

// Who computes what: a step's batch is that of `replicas` logical replicas, of which each member
// has a run of consecutive ones, as many as any other or one fewer. What it contributes are the
// sums under as few nodes of the replicas' tree as its run allows, rounded or not (tree_sum.h).
struct GroupShape {
  static constexpr int kMostMembers = 4095;
  static constexpr int kMostReplicas = 1 << 20;

  int members = 1;
  int replicas = 1;  // at least 1
  bool rounded = false;

  compute::Subtree replicas_of(int member) const;
  std::vector<compute::Subtree> nodes_of(int member) const;
  std::vector<compute::Subtree> nodes() const;  // of all members, in order
};

}  // namespace muster::collective
