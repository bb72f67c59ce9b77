#pragma once

#include <string>
#include <string_view>

namespace muster {

// A metric has a name as fields of JSON have: "loss", "balancedAccuracy". Where it is told, the
// name may follow that of the data that it is of.

// "validationBalancedAccuracy": in the manifest, /progress, result.json and summary.json.
std::string metric_field(std::string_view data, std::string_view metric);

// "validation_balanced_accuracy": in TensorBoard. `data` may be empty.
std::string metric_tag(std::string_view data, std::string_view metric);

// "balanced accuracy": for people.
std::string metric_words(std::string_view metric);

}  // namespace muster
