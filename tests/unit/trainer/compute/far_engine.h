#pragma once

#include <memory>

#include "trainer/compute/engine.h"

namespace muster::compute::testing {

// An engine in place of a device's: it computes on the CPU, but in memory that nobody else can
// address. Whoever reads or writes that memory otherwise than by Memory::read() and write()
// crashes. What these copy is there only once the completion was waited for; until then the target
// of a read is not a number.
std::unique_ptr<Engine> make_far_engine(const ModelSpec& model, const EngineOptions& options);

}  // namespace muster::compute::testing
