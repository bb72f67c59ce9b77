#pragma once

#include <stop_token>

#include "trainer/loop/checkpointer.h"
#include "trainer/loop/evaluation/stop_rule.h"
#include "trainer/loop/evaluation/validator.h"
#include "trainer/loop/recorder.h"
#include "trainer/loop/synchronizers/synchronizer.h"
#include "trainer/loop/training.h"

namespace muster::loop {

enum class Ending { finished, interrupted };

// Trains until there is no more to do or `stop` is requested, with any synchronizer. Nothing here
// allocates, locks or waits in a step. `checkpointer`, `validator` and `rule` may be null (not rank
// 0, or nothing is saved, evaluated within the training or ends it). Throws Invalid (kDiverged)
// naming the step at which the loss is not finite, and what start() and step() throw.
Ending train(Synchronizer& synchronizer, Assembly& assembly, Recorder& recorder,
             Checkpointer* checkpointer, Validator* validator, std::stop_token stop,
             StopRule* rule = nullptr);

}  // namespace muster::loop
