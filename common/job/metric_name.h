#pragma once

#include <string>
#include <string_view>

namespace muster {

// A metric is named like a JSON field: "loss", "balancedAccuracy". In reports the name of the data
// may come before the name of the metric.

// Returns "validationBalancedAccuracy", as in the manifest, /progress, result.json and
// summary.json.
std::string metric_field(std::string_view data, std::string_view metric);

// Returns "validation_balanced_accuracy", as in TensorBoard. `data` may be empty.
std::string metric_tag(std::string_view data, std::string_view metric);

// Returns "balanced accuracy", "average precision 50" or "macro f1", for people.
std::string metric_words(std::string_view metric);

}  // namespace muster
