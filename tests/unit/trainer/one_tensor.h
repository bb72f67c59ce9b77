#pragma once

#include "trainer/compute/parameter_layout.h"

namespace muster {

// A model of a single tensor.
inline compute::ParameterLayout layout_of(size_t floats) {
  compute::ParameterTensor tensor;
  tensor.name = "w";
  tensor.shape = {static_cast<int64_t>(floats)};
  tensor.count = floats;
  tensor.regularized = true;
  return compute::ParameterLayout({tensor});
}

}  // namespace muster
