#include "trainer/loop/synchronizers/step_times.h"

#include <algorithm>

namespace muster::loop {

namespace {
constexpr double kNewest = 0.02;  // weight of the newest time: an average over about fifty steps
}

void StepTimes::add(const collective::Session& session) {
  slowest_now_ = 0;
  for (size_t i = 0; i < seconds_.size(); ++i) {
    const double seconds = session.seconds(static_cast<int>(i));
    slowest_now_ = std::max(slowest_now_, seconds);
    seconds_[i] = seconds_[i] > 0 ? seconds_[i] + kNewest * (seconds - seconds_[i]) : seconds;
  }
}

std::map<std::string, double> StepTimes::metrics() const {
  if (seconds_.size() < 2) return {};
  const auto slowest = std::max_element(seconds_.begin(), seconds_.end());
  std::vector<double> sorted = seconds_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (*middle <= 0) return {};
  return {{"stragglerRank", ranks_[static_cast<size_t>(slowest - seconds_.begin())]},
          {"stragglerSlowdown", *slowest / *middle}};
}

}  // namespace muster::loop
