#include "trainer/loop/synchronizers/step_times.h"

#include <algorithm>
#include <numeric>

namespace muster::loop {

namespace {

constexpr double kNewest = 0.02;  // weight of the newest time: an average over about fifty steps

void smooth(double& average, double newest, bool first) {
  average = first ? newest : average + kNewest * (newest - average);
}

}  // namespace

void add_to_average(collective::ComputingTime& average, const collective::ComputingTime& time) {
  const bool first = !(average.seconds > 0);
  smooth(average.seconds, time.seconds, first);
  smooth(average.input, time.input, first);
}

void StepTimes::add(const collective::Session& session) {
  slowest_now_ = 0;
  for (size_t i = 0; i < times_.size(); ++i) {
    const collective::ComputingTime time = session.time(static_cast<int>(i));
    slowest_now_ = std::max(slowest_now_, time.seconds);
    add_to_average(times_[i], time);
  }
}

std::map<std::string, double> StepTimes::metrics() const {
  return straggler_of(ranks_, times_);
}

std::map<std::string, double> straggler_of(const std::vector<int>& ranks,
                                           const std::vector<collective::ComputingTime>& times) {
  if (times.size() < 2) return {};
  std::vector<size_t> order(times.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return times[i].seconds; });
  const collective::ComputingTime& median = times[order[(order.size() - 1) / 2]];
  const collective::ComputingTime& slowest = times[order.back()];
  if (!(median.seconds > 0)) return {};
  const double longer = slowest.seconds - median.seconds;
  const double input = longer > 0 ? (slowest.input - median.input) / longer : 0;
  return {{"stragglerRank", ranks[order.back()]},
          {"stragglerSlowdown", slowest.seconds / median.seconds},
          {"stragglerInputShare", std::clamp(input, 0.0, 1.0)}};
}

}  // namespace muster::loop
