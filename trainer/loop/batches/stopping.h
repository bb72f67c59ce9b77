#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "trainer/checkpoint/files/manifest.h"
#include "trainer/compute/metrics/metric.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// The rules by which evaluations end a training and choose its best checkpoint, as Keras's
// EarlyStopping and ModelCheckpoint(save_best_only) have them; and those of stopWhen. A value that
// is not finite is never an improvement.

// Returns whether `value` is better than `best` by more than `min_delta`; any finite value is
// better than none.
bool improves(compute::Better better, double value, std::optional<double> best,
              double min_delta = 0);

// Returns the evaluations' results after one more, which gave `metrics` of the parameters at
// `position`. Throws Invalid, which begins with the field, if a metric by which the spec compares
// is not among them.
checkpoint::Evaluations after(const checkpoint::Position& position,
                              std::span<const compute::Metric> metrics,
                              const spec::TrainingSpec& spec);

// The result by which the best checkpoint is told and kept: that of bestOnly, or else that of
// earlyStopping.
struct BestResult {
  std::string metric;
  checkpoint::Best best;
};
std::optional<BestResult> best_of(const checkpoint::Evaluations& evaluations,
                                  const spec::TrainingSpec& spec);

// Returns the mean training loss of the epoch before position.epoch if it ends the training, by
// stopWhen. It follows from the position alone, so that every process decides the same.
std::optional<checkpoint::Best> reached_by_training(const checkpoint::Position& position,
                                                    const spec::TrainingSpec& spec);

// Returns true if early stopping ends the training.
bool is_stopped(const checkpoint::Evaluations& evaluations,
                const std::optional<spec::EarlyStoppingSpec>& rule);
// Returns true if early stopping or stopWhen has ended the training.
bool has_ended(const checkpoint::Evaluations& evaluations, const spec::TrainingSpec& spec);

// Returns what has ended a training that ended with these evaluations.
checkpoint::End end_of(const checkpoint::Evaluations& evaluations, const spec::TrainingSpec& spec);

// Logs that early stopping or stopWhen ends the training at `position`, if one does.
void tell_end(const checkpoint::Position& position, const spec::TrainingSpec& spec);

}  // namespace muster::loop
