#pragma once

#include <cstdint>

#include "trainer/compute/graph.h"
#include "trainer/compute/optimizer.h"
#include "trainer/compute/precision.h"

namespace muster::compute {

// Returns about how many bytes a process uses for a training step of `rows` rows on the CPU:
// parameters, their gradients and the optimizer's slots; the values that layers keep for the
// backward pass; the gradients of values that are in use at the same time; and each thread's own
// sums. Samples, and the tiles that threads work on, are not counted.
int64_t step_memory(const Graph& graph, int64_t rows, const OptimizerSpec& optimizer,
                    Precision precision, int threads);

}  // namespace muster::compute
