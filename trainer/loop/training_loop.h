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

// Trains with any synchronizer until the training is complete or `stop` is requested. The loop
// itself does not allocate, lock or wait in a step. `checkpointer`, `validator` and `rule` may be
// null: for other ranks than 0, or if nothing is saved, nothing is evaluated within the training,
// or no rule ends it early. Throws Invalid (kDiverged) naming the step at which the loss is not
// finite, and the errors of start() and step().
Ending train(Synchronizer& synchronizer, Assembly& assembly, Recorder& recorder,
             Checkpointer* checkpointer, Validator* validator, std::stop_token stop,
             StopRule* rule = nullptr);

}  // namespace muster::loop
