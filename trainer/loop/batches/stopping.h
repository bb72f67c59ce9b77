#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "trainer/checkpoint/files/manifest.h"
#include "trainer/compute/metrics/metric.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// The rules by which evaluations end a training and choose its best checkpoint, as Keras's
// EarlyStopping and ModelCheckpoint(save_best_only) have them; and those of stopWhen. A value that
// is not finite is never an improvement.

// Returns the evaluations' results after one more that gave `metrics` at `position`. Throws
// Invalid, which begins with the field, if a metric by which the spec compares is not among them.
checkpoint::Evaluations after(const checkpoint::Position& position,
                              std::span<const compute::Metric> metrics,
                              const spec::TrainingSpec& spec);

// Returns the mean training loss of the epoch before position.epoch if it ends the training, by
// stopWhen. It follows from the position alone, so that every process decides the same.
std::optional<checkpoint::Best> reached_by_training(const checkpoint::Position& position,
                                                    const spec::TrainingSpec& spec);

// Returns true if early stopping ends the training.
bool is_stopped(const checkpoint::Evaluations& evaluations,
                const std::optional<spec::EarlyStoppingSpec>& rule);

// Logs that stopWhen ends the training.
void tell_reached(const checkpoint::Best& reached, const spec::StopWhenSpec& rule);

}  // namespace muster::loop
