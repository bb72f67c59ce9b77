#pragma once

#include <cstdint>
#include <span>

#include "trainer/compute/engine.h"
#include "trainer/compute/graph.h"

namespace muster::compute {

// What every engine checks of its arguments. Each throws Invalid, saying what was expected and what
// was found.

// A batch of at most `max_rows` rows; `with_targets`: with a valid label or a target for each.
void check_batch(const Batch& batch, const Graph& graph, int64_t max_rows, bool with_targets);
// Room for the outputs of all rows.
void check_room(const Batch& batch, int64_t output_count, std::span<const float> outputs);
// The optimizer's slots, each of the layout's size and in memory that the engine computes in.
void check_slots(const Optimizer& optimizer, std::span<Memory* const> slots,
                 const ParameterLayout& layout, bool (*usable)(Memory&));

}  // namespace muster::compute
