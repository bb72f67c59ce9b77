#include "trainer/loop/loss_text.h"

#include <fmt/format.h>

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

}  // namespace muster::loop
