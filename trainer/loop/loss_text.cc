#include "trainer/loop/loss_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/job/metric_name.h"

namespace muster::loop {

std::string loss_text(double loss) {
  return std::isnan(loss) ? "nan" : fmt::format("{:.4f}", loss);
}

std::string metrics_text(const std::vector<compute::Metric>& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) {
    if (!text.empty()) text += ", ";
    text += name == "loss" ? "cost " + loss_text(value)
                           : fmt::format("{} {:.4f}", metric_words(name), value);
  }
  return text.empty() ? "nothing to measure" : text;
}

std::string metrics_problem(const compute::LossKind& loss,
                            const std::vector<compute::Metric>& metrics) {
  if (!std::ranges::all_of(metrics, [](const auto& one) { return std::isfinite(one.value); }))
    return "expected finite numbers";
  if (!metrics.empty()) return "";
  const bool has_objects = compute::describe(loss).labels == compute::LabelKind::objects;
  return has_objects ? "expected objects that are no crowds, found none"
                     : "expected samples, found none";
}

}  // namespace muster::loop
