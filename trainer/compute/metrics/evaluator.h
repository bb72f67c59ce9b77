#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/compute/engine.h"
#include "trainer/compute/metrics/metric.h"

namespace muster::compute {

// What a model comes to on the rows of a batch.
struct EvaluatedRows {
  const Batch& batch;              // with its labels
  std::span<const float> outputs;  // [batch.rows, width] floats as Engine::evaluate gives them
  LossSums sums;
};

// Takes what a model says of all samples, batch by batch in the data's order, and says in the end
// what that comes to. One thread feeds it, and it must count in that order, so that its metrics
// have the same bits whatever the number of threads of the engine.
class Accumulator {
 public:
  virtual ~Accumulator() = default;
  virtual void add(const EvaluatedRows& rows) = 0;
  // Of all rows so far: the metrics of its definition, in their order. All are 0 without any rows.
  virtual std::vector<Metric> metrics() const = 0;
};

// A kind of accumulator, and the metrics that it gives.
struct Evaluator {
  std::vector<MetricDefinition> metrics;
  // `width`: outputs of a row.
  std::unique_ptr<Accumulator> (*make)(int64_t width);
};

// balancedAccuracy: the mean, over the classes that any row is of, of the share of the class's rows
// whose largest output is that class. Labels are classes from 0 to width - 1.
Evaluator class_recall();

}  // namespace muster::compute
