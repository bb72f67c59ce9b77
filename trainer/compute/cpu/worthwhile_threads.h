#pragma once

#include <cstdint>

#include "trainer/compute/graph.h"

namespace muster::compute::cpu {

// Returns the number of threads that are worth their cost for a step of this model, up to `cpus`.
int worthwhile_threads(const Graph& graph, int64_t rows, int cpus);

}  // namespace muster::compute::cpu
