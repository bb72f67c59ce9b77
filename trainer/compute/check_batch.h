#pragma once

#include <cstdint>
#include <span>

#include "trainer/compute/engine.h"
#include "trainer/compute/graph.h"

namespace muster::compute {

// The checks that every engine makes on its arguments. Each function throws Invalid, whose text
// says what was expected and what was found.

// Checks that the batch has at most `max_rows` rows and, if `with_targets`, a valid label or a
// target for each row.
void check_batch(const Batch& batch, const Graph& graph, int64_t max_rows, bool with_targets);
// Checks that there is room for the outputs of all rows.
void check_room(const Batch& batch, int64_t output_count, std::span<const float> outputs);
// Checks that each of the optimizer's slots has the layout's size and is in memory that the engine
// computes in.
void check_slots(const Optimizer& optimizer, std::span<Memory* const> slots,
                 const ParameterLayout& layout, bool (*usable)(Memory&));

}  // namespace muster::compute
