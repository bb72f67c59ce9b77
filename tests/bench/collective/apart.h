#pragma once

#include <cstddef>
#include <filesystem>

namespace muster::bench {

// Seconds of a step of a collective of two processes with communication disabled: at the same time
// and on one thread each, either computes the gradients of its own batches and updates its half of
// parameters and slots by them, and never waits for the other or looks at what it has. The mean of
// `steps` and of both processes, after a fifth as many that are not timed. `training`: a
// training.yaml. Throws Invalid for one that is wrong.
double apart_seconds(const std::filesystem::path& training, size_t steps);

}  // namespace muster::bench
