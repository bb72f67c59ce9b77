#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "common/documents/schema.h"
#include "common/text/pattern.h"
#include "trainer/compute/models/model_spec.h"
#include "trainer/compute/optimizer.h"
#include "trainer/compute/schedule.h"
#include "trainer/spec/data_source.h"

namespace muster::spec {

// `spec.training` of a TrainingJob, or a separate training.yaml, as C++ values. Only the schema
// (training.schema.yaml, embedded) knows fields, bounds, defaults and descriptions; the operator
// inserts it into the TrainingJob's schema.

// Whether GPUs exchange gradients directly by NCCL; see training.schema.yaml.
enum class Nccl { automatic, always, never };

// The type that gradients and parameters are rounded to on their way between members and parameter
// servers.
enum class WireType { float32, bfloat16 };
const char* name_of(WireType type);

enum class SyncPolicy { sync, async, bounded_staleness };

struct DataSpec {
  DataSource train;
  std::optional<DataSource> validation;
  std::optional<DataSource> test;
  bool drop_remainder = false;
};

// The default metric by which evaluations are compared; metric.h has the other metrics.
inline constexpr const char* kDefaultMetric = "validationLoss";

struct EarlyStoppingSpec {
  std::string metric = kDefaultMetric;
  uint64_t patience = 0;
  double min_delta = 0;
  bool restore_best = false;
};

// The metric of stopWhen that needs no evaluation: the mean loss of the last whole epoch.
inline constexpr const char* kTrainLoss = "trainLoss";

struct StopWhenSpec {
  std::string metric;    // kTrainLoss, or a name of metric.h
  bool at_least = true;  // false: at most
  double value = 0;

  bool by_training() const { return metric == kTrainLoss; }
  // Returns false for a value that is not finite.
  bool is_reached_by(double found) const {
    return std::isfinite(found) && (at_least ? found >= value : found <= value);
  }
  bool operator==(const StopWhenSpec&) const = default;
};

// Which tensors of initializeFrom are used for which tensors of the model. The patterns are valid.
struct InitializeOptions {
  std::vector<Rename> rename;        // from names in the file to names of the model
  std::vector<std::string> include;  // patterns of the model's names; empty: all
  std::vector<std::string> exclude;
  bool skip_mismatched = false;
  bool moving_averages = false;
};

struct CheckpointSpec {
  std::optional<double> every_seconds;
  std::optional<uint64_t> every_steps;
  std::optional<uint64_t> every_epochs;
  int keep = 5;                            // 1 with best_only
  std::optional<std::string> best_only;    // the metric that decides the best checkpoint
  std::optional<double> bytes_per_second;  // limit of each replica's writing speed
};

struct TrainingSpec {
  compute::ModelSpec model;  // input_shape and label_count are filled in from the data at the start
  std::string initialize_from;  // see checkpoint/start/take_weights.h; empty: nothing
  InitializeOptions initialize_options;
  DataSpec data;
  int64_t batch_size = 32;         // samples of one step of one replica
  std::optional<uint64_t> epochs;  // exactly one of epochs, steps
  std::optional<uint64_t> steps;
  int gradient_accumulation = 1;
  compute::OptimizerSpec optimizer;
  compute::Schedule schedule;
  SyncPolicy policy = SyncPolicy::sync;
  int backup_workers = 0;
  int max_staleness = 4;
  WireType wire = WireType::float32;
  Nccl nccl = Nccl::automatic;
  CheckpointSpec checkpoint;
  std::optional<uint64_t> evaluate_every_epochs;  // evaluation within the training
  std::optional<EarlyStoppingSpec> early_stopping;
  std::optional<StopWhenSpec> stop_when;
  uint64_t summary_every_steps = 100;
  size_t summary_pictures = 4;  // number of pictures of each evaluation of a detector
  bool export_onnx = true;
  compute::Precision precision = compute::Precision::float32;
  std::string device = "auto";
  std::string ps_device = "cpu";
  int devices = 1;  // devices of one replica, each with batch_size samples a step
  int threads = 0;  // 0: chosen by the CPU budget and the model
  uint64_t seed = 1;
  bool strict_determinism = false;

  // Whether a collective's gradients and their sums are rounded (compute/tree_sum.h).
  bool rounded() const { return wire == WireType::bfloat16; }
  // Returns why GPUs cannot add up the gradients of a step without the host; "" if they can.
  std::string why_unlinked() const {
    if (nccl == Nccl::never) return "synchronization.nccl is never";
    if (gradient_accumulation > 1) return "gradientAccumulation is more than 1";
    return rounded() ? "synchronization.wire is bfloat16" : "";
  }
  // Whether training saves checkpoints before the final one, apart from requests.
  bool saves_on_the_way() const {
    return checkpoint.every_steps || checkpoint.every_seconds || checkpoint.every_epochs ||
           keeps_best();
  }
  // Whether the checkpoint that evaluation finds to be the best is kept because of that.
  bool keeps_best() const {
    return checkpoint.best_only || (early_stopping && early_stopping->restore_best);
  }
  // The metric by which an evaluator marks the best checkpoint.
  std::string best_metric() const {
    if (checkpoint.best_only) return *checkpoint.best_only;
    return early_stopping ? early_stopping->metric : kDefaultMetric;
  }
};

}  // namespace muster::spec
