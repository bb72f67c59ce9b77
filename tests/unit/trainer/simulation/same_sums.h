#pragma once

#include <algorithm>

#include "trainer/checkpoint/files/epoch_sums.h"

namespace muster::simulation {

inline bool same_sums(const checkpoint::EpochSums& a, const checkpoint::EpochSums& b) {
  return std::ranges::equal(a.known(), b.known(), [](const auto& one, const auto& other) {
    return one.number == other.number && one.sums == other.sums;
  });
}

}  // namespace muster::simulation
