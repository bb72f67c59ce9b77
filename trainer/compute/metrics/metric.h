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

// A metric for each single class. An evaluation reports it besides the metrics over all classes.
struct ClassMetric {
  std::string name;  // "averagePrecisionByClass"
  // Holds a value for each class; nothing for a class without anything to measure.
  std::vector<std::optional<double>> values;
};

// Returns the value of the metric with this name; nothing if `metrics` does not have it.
std::optional<double> value_of(std::span<const Metric> metrics, const std::string& name);

enum class Better { lower, higher };

// A metric as earlyStopping and bestOnly use it.
struct MetricDefinition {
  std::string name;
  Better better = Better::higher;
};

}  // namespace muster::compute
