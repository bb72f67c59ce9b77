#pragma once

#include <cmath>

#include "trainer/compute/aligned.h"
#include "trainer/compute/optimizer.h"

namespace muster::ps {

// Returns numbers for the tensors of a range, which is counted in the layout; the padding between
// them is zero.
inline compute::Floats wave(const compute::ParameterLayout& layout, compute::Range range,
                            double pace, compute::FloatMemory* memory = nullptr) {
  compute::Floats values(range.size(), compute::CacheLineAllocator<float>(memory));
  for (const compute::ParameterTensor& tensor : layout.tensors())
    for (size_t i = tensor.offset; i < tensor.offset + tensor.count; ++i)
      if (i >= range.begin && i < range.end)
        values[i - range.begin] = static_cast<float>(std::sin(pace * static_cast<double>(i + 1)));
  return values;
}

inline compute::Floats wave(const compute::ParameterLayout& layout, double pace) {
  return wave(layout, {0, layout.size()}, pace);
}

inline compute::UpdateArguments arguments(uint64_t t) {
  compute::UpdateArguments arguments;
  arguments.learning_rate = 0.01f;
  arguments.inverse_weight = arguments.inverse_rows = 0.125f;
  arguments.t = t;
  return arguments;
}

}  // namespace muster::ps
