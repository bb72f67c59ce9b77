#pragma once

#include <string>
#include <string_view>

namespace muster::metrics {

// Returns "muster_trainer_<name><ending>": only letters, digits and _ as Prometheus requires, and
// the ending once.
std::string metric_name(std::string_view name, std::string_view ending);

// Returns one line of help for people; a name that is not listed (docs/reference/metrics.md has the
// same list) is its own help.
std::string help_of(const std::string& full_name);

}  // namespace muster::metrics
