#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/compute/engine.h"
#include "trainer/compute/metrics/metric.h"

namespace muster::compute {

struct Graph;

// The results of a model for the rows of a batch.
struct EvaluatedRows {
  const Batch& batch;              // includes the labels
  std::span<const float> outputs;  // [batch.rows, width] floats as Engine::evaluate gives them
  LossSums sums;
};

// Receives a model's results for all samples, batch by batch in the order of the data, and computes
// metrics from them. One thread calls an accumulator, and it must accumulate in this order, so that
// its metrics have the same bits for any number of threads of the engine.
class Accumulator {
 public:
  virtual ~Accumulator() = default;
  virtual void add(const EvaluatedRows& rows) = 0;
  // Returns the metrics of its definition, in their order, over all rows so far. A metric for which
  // the rows have nothing to measure is left out.
  virtual std::vector<Metric> metrics() const = 0;
  // Returns the metrics of each class, if the accumulator has any.
  virtual std::vector<ClassMetric> class_metrics() const { return {}; }
};

// A kind of accumulator, and the metrics that it gives.
struct Evaluator {
  std::vector<MetricDefinition> metrics;
  // The graph is used only during the call.
  std::unique_ptr<Accumulator> (*make)(const Graph& graph);
};

// balancedAccuracy is the mean of the classes' recalls, over the classes that have rows. A class's
// recall is the share of its rows whose largest output is that class. Labels are classes from 0 to
// the model's outputs - 1.
Evaluator class_recall();

// COCO's twelve numbers for a model with SsdLoss; see detection::CocoMetrics. A number for which
// there is no object to find is left out. averagePrecisionByClass is COCO's first number for each
// class with objects alone.
Evaluator coco_metrics();

}  // namespace muster::compute
