#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "trainer/checkpoint/files/manifest.h"
#include "trainer/checkpoint/start/completion.h"
#include "trainer/compute/metrics/metric.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// The rules by which evaluations end a training and choose its best checkpoint, like Keras's
// EarlyStopping and ModelCheckpoint(save_best_only); and the rules of stopWhen. A value that is not
// finite is never an improvement.

// Whether `value` is better than `best` by more than `min_delta`. Any finite value is better than
// no value.
bool improves(compute::Better better, double value, std::optional<double> best,
              double min_delta = 0);

// Returns the state of the evaluations after one more, which gave `metrics` for the parameters at
// `position`. Throws Invalid, beginning with the field, if `metrics` lacks a metric that the spec
// compares.
checkpoint::Evaluations after(const checkpoint::Position& position,
                              std::span<const compute::Metric> metrics,
                              const spec::TrainingSpec& spec);

// The result that decides the best checkpoint: by the metric of bestOnly, or else of earlyStopping.
struct BestResult {
  std::string metric;
  checkpoint::Best best;
};
std::optional<BestResult> best_of(const checkpoint::Evaluations& evaluations,
                                  const spec::TrainingSpec& spec);

// Returns the mean training loss of the epoch before position.epoch if this loss ends the training
// by stopWhen. The result depends only on the position, so that every process decides the same.
std::optional<checkpoint::Best> reached_by_training(const checkpoint::Position& position,
                                                    const spec::TrainingSpec& spec);

// Logs it if early stopping or stopWhen ends the training at `position`.
void tell_end(const checkpoint::Position& position, const spec::TrainingSpec& spec);

}  // namespace muster::loop
