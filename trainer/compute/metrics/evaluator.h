#pragma once

#include <cstdint>
#include <functional>
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
  // Returns for each class how many of its samples were taken for each class; nothing if the
  // accumulator does not count them.
  virtual std::vector<std::vector<int64_t>> confusion() const { return {}; }
};

// How an evaluation measures.
struct Measuring {
  // Returns a number of target `index`, or a prediction of it, in the unit of the data. Empty: the
  // model learns numbers in this unit.
  std::function<double(size_t index, double number)> undo = {};
  int64_t rank_at = 10;  // how many of each group's rows a ranking counts

  double in_unit(size_t index, float number) const {
    const auto exact = static_cast<double>(number);
    return undo ? undo(index, exact) : exact;
  }
};

// A kind of accumulator, and the metrics that it gives.
struct Evaluator {
  std::vector<MetricDefinition> metrics;
  // The graph is used only during the call.
  std::unique_ptr<Accumulator> (*make)(const Graph& graph, const Measuring& measuring);
};

// Measures of a model that chooses one class, the one with the largest output. Labels are classes
// from 0 to the model's outputs - 1.
//   balancedAccuracy: the mean of the classes' recalls, over the classes that have rows. A class's
//     recall is the share of its rows that are taken for it.
//   macroF1: the mean of the classes' F1, over the classes that have rows or are chosen.
//   auc: the mean, over the classes that have rows, of the area under the ROC curve of the class's
//     probability, by which its rows are told from all others.
// With more than kMostMeasuredClasses there is no auc, and nothing for each class.
Evaluator class_measures();
constexpr size_t kMostMeasuredClasses = 100;

// Measures of a model with BinaryCrossEntropy, each of whose outputs is told to be 0 or 1.
//   auc: the area under the ROC curve, exact: the share of the pairs of a 1 and a 0 in which the 1
//     has the larger output; equal ones count half. The mean over the outputs.
//   aucAt200Thresholds: the same, of the curve through 200 thresholds, as Keras's AUC computes it.
//   logLoss: the loss without the weight of the positive targets.
//   precision, recall, f1: of the decisions that all outputs make by the loss's threshold. A
//     precision of no decision for 1 is 0.
// Without a 1 in the data only logLoss is there; the two areas need a 0, too.
Evaluator decision_measures();

// Measures of predicted numbers in the unit of the data, each the mean over the targets. Of several
// quantiles the one nearest to 0.5 is measured.
//   rmse: the square root of the mean squared error. mae: the mean absolute error.
//   r2: 1 - the squared error / the squared distance from the targets' mean. Outputs whose targets
//     are all equal have none.
Evaluator number_measures();

// Measures of how well an output ranks the rows of a group, each the mean over the groups with a
// relevant row; a row is relevant if its target is above 0. Of the rows by falling output the first
// k = Measuring::rank_at count.
//   ndcg: the sum of target / log2(1 + place), divided by that of the best order. Rows with equal
//     outputs have the mean of their places' shares, as in scikit-learn's ndcg_score.
//   meanAveragePrecision: the sum, over the relevant rows among the first k, of the share of the
//     relevant rows up to there, divided by the smaller of k and the number of relevant rows. Equal
//     outputs keep the order of the rows.
//   hitRate: 1 if one of the first k is relevant, else 0.
// There is nothing to measure if batches have no groups.
Evaluator ranking_measures();

// COCO's twelve numbers for a model with SsdLoss; see detection::CocoMetrics. A number for which
// there is no object to find is left out. averagePrecisionByClass is COCO's first number for each
// class with objects alone.
Evaluator coco_metrics();

}  // namespace muster::compute
