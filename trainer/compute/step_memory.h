#pragma once

#include <cstdint>

#include "trainer/compute/graph.h"
#include "trainer/compute/optimizer.h"
#include "trainer/compute/precision.h"

namespace muster::compute {

// Returns about how many bytes a training step of `rows` rows works in, on the CPU and by a process
// of its own: parameters, their gradients and the optimizer's slots; the values that layers keep
// for the backward pass; their gradients, as many as are in use at the same time; and what threads
// add up apart. Samples, and the tiles that threads work on, are not counted.
int64_t step_memory(const Graph& graph, int64_t rows, const OptimizerSpec& optimizer,
                    Precision precision, int threads);

}  // namespace muster::compute
