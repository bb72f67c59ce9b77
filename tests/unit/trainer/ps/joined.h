#pragma once

#include <vector>

#include "trainer/ps/shard/versions.h"

namespace muster::ps {

// Returns the values as their receiver gets them: one after the other.
inline std::vector<float> joined(const std::vector<Lendable::Loan>& values) {
  std::vector<float> joined;
  for (const Lendable::Loan& loan : values) joined.insert(joined.end(), loan->begin(), loan->end());
  return joined;
}

}  // namespace muster::ps
