#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace muster::compute {

// A number that says how well a model does on some samples.
struct Metric {
  std::string name;  // "accuracy"; common/job/metric_name.h has the names for users
  double value = 0;
};

// A metric of each class alone, as an evaluation reports it beside the metrics of all classes.
struct ClassMetric {
  std::string name;                           // "averagePrecisionByClass"
  std::vector<std::optional<double>> values;  // by class; nothing where there is nothing to measure
};

// Returns the value of the metric of this name; nothing if it is not among them.
std::optional<double> value_of(std::span<const Metric> metrics, const std::string& name);

enum class Better { lower, higher };

// A metric as earlyStopping and bestOnly know it.
struct MetricDefinition {
  std::string name;
  Better better = Better::higher;
};

}  // namespace muster::compute
