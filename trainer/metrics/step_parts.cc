#include "trainer/metrics/step_parts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trainer/metrics/reporter.h"

namespace muster::metrics {

void StepParts::end_step(const TimeSpent& spent, double update) {
  const auto since = [&](TimeUse use) { return spent[use] - before_[use]; };
  const double computing = since(TimeUse::computing);
  const double updating = std::clamp(update, 0.0, std::max(0.0, computing));
  const std::array<double, kNames.size()> seconds = {since(TimeUse::input),
                                                     computing - updating,
                                                     since(TimeUse::communication),
                                                     since(TimeUse::slowest),
                                                     updating,
                                                     since(TimeUse::checkpoint)};
  for (size_t i = 0; i < seconds.size(); ++i)
    if (seconds[i] > 0) histograms_[i].add(seconds[i]);
  before_ = spent;
}

void StepParts::report(Reporter& reporter) {
  for (size_t i = 0; i < kNames.size(); ++i)
    reporter.observe("step_part", std::exchange(histograms_[i], {}),
                     {{"part", std::string(kNames[i])}});
}

}  // namespace muster::metrics
