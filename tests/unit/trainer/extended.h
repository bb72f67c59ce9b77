#pragma once

#include <utility>

#include "trainer/compute/optimizer.h"

namespace muster {

// A formula with all that can stand beside it: L2, clipping by the norm and a moving average. It
// needs whole tensors.
inline compute::OptimizerSpec extended(compute::OptimizerKind kind) {
  compute::OptimizerSpec spec = std::move(kind);
  spec.l2 = compute::L2{0.1f, ""};
  spec.clip_norm = 0.5f;
  spec.average = 0.75;
  return spec;
}

}  // namespace muster
