#pragma once

#include <cstdint>
#include <optional>

#include "trainer/checkpoint/manifest.h"
#include "trainer/loop/evaluation/evaluation.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// The rules by which evaluations end a training and choose its best checkpoint, as Keras's
// EarlyStopping and ModelCheckpoint(save_best_only) have them. A value that is not finite is never
// an improvement.

// Returns the evaluations' results after `evaluation`, which was made at `position`. Precondition:
// the evaluation has the metrics by which the spec compares.
checkpoint::Evaluations after(const checkpoint::Position& position, const Evaluation& evaluation,
                              const spec::TrainingSpec& spec);

// Returns true if early stopping ends the training.
bool is_stopped(const checkpoint::Evaluations& evaluations,
                const std::optional<spec::EarlyStoppingSpec>& rule);

}  // namespace muster::loop
