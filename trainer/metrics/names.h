#pragma once

#include <string>
#include <string_view>

namespace muster::metrics {

// "muster_trainer_<name><ending>": letters, digits and _ as Prometheus wants them, the ending once.
std::string metric_name(std::string_view name, std::string_view ending);

// One line for people; a name that is not listed (docs/metrics.md lists the same) is its own help.
std::string help_of(const std::string& full_name);

}  // namespace muster::metrics
