#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/documents/document.h"

namespace muster::metrics {

// The answer of /progress, except for `restarts`, `resumed` and `requestedCheckpoint`. The operator
// copies the chief's into status.progress. The field names are the API's: {role, index, state,
// step, totalSteps, epoch, loss, metrics {accuracy, validationAccuracy}, examplesPerSecond,
// inputWaitSeconds, etaSeconds, lastCheckpointStep, lastCheckpointTime, goodput, generation}. loss
// is a string, since JSON has no NaN: "0.25", "NaN", "+Inf", "-Inf". Left out are: loss before the
// first report, etaSeconds while unknown, lastCheckpointStep and lastCheckpointTime (RFC 3339)
// before the first checkpoint, and any other number that is not finite. "stalled" is present while
// some work gives no sign of life. Rank 0 of a group adds the fields of loop/group_report.h.
struct Progress {
  // Starting | waiting | training | evaluating | serving | finishing | done.
  std::string state = "starting";
  uint64_t step = 0;
  uint64_t steps_here = 0;  // steps of the group since this process leads it
  uint64_t total_steps = 0;
  uint64_t epoch = 0;
  std::optional<double> loss;  // none before the first report
  // What "metrics" has, by kind and name, as in common/job/metric_name.h.
  std::map<std::string, double> training;    // of the batches since the last report: "accuracy"
  std::map<std::string, double> validation;  // of the newest evaluation: "loss", "accuracy"
  uint64_t validation_step = 0;              // the step that it has evaluated
  std::map<std::string, double> group;       // of the group: "staleness", "stragglerRank"
  double examples_per_second = 0;
  double input_wait_seconds = 0;  // since the process began to train
  double eta_seconds = -1;        // negative: unknown
  uint64_t last_checkpoint_step = 0;
  double last_checkpoint_time = 0;  // Unix seconds, 0: none
  double goodput = 1;               // time in committed steps / time since the first start
  uint64_t generation = 0;
  Json json(const std::string& role, int index) const;
};

// An entry of "stalled" in /progress: work of the replica "worker-1" that has given no sign of life
// since `since` (Unix seconds). `storage`: it waits for a file system.
Json stalled_json(const std::string& replica, const std::string& doing, double since, bool storage);

}  // namespace muster::metrics
