#pragma once

#include <string>
#include <vector>

#include "trainer/compute/loss.h"

namespace muster::loop {

// Returns a loss as text for people: "0.1234", "inf", or "nan" (whatever the NaN's sign bit).
std::string loss_text(double loss);

// Returns the metrics of a loss as text: "cost 0.1234, accuracy 0.9744"; "nothing to measure" if
// there are none.
std::string metrics_text(const std::vector<compute::Metric>& metrics);

// Returns what was expected of an evaluation with these metrics, and not found; "" if nothing is
// wrong.
std::string metrics_problem(const compute::LossKind& loss,
                            const std::vector<compute::Metric>& metrics);

}  // namespace muster::loop
