#pragma once

#include <stop_token>

#include "trainer/loop/checkpointer.h"
#include "trainer/loop/recorder.h"
#include "trainer/loop/synchronizer.h"

namespace muster::loop {

enum class Ending { finished, interrupted };

// Trains until there is no more to do or `stop` is requested, whoever synchronizes. Nothing here
// allocates, locks or waits in a step. `checkpointer` may be null (not rank 0).
// Throws Invalid (kDiverged) naming the step at which the loss is not finite, and what start() and
// step() throw.
Ending train(Synchronizer& synchronizer, const Workload& workload, Feed& feed, Recorder& recorder,
             Checkpointer* checkpointer, std::stop_token stop);

}  // namespace muster::loop
