#pragma once

#include <memory>

#include "trainer/compute/engine.h"

namespace muster::compute::testing {

// An engine that stands for one on a device: it computes on the CPU, but in memory that nobody else
// can address. Any access to that memory except by Memory::read() and write() crashes. Their copies
// are there only once the caller has waited for the completion; until then the target of a read
// holds NaN.
std::unique_ptr<Engine> make_far_engine(const ModelSpec& model, const EngineOptions& options);

}  // namespace muster::compute::testing
