#pragma once

#include <algorithm>
#include <string_view>

namespace muster::api {

// The reason of a process that was lost because the `muster run` that had started it ended.
inline constexpr const char* kRunnerLost = "RunnerLost";

// The reason of a replica whose process could not be started, so that it has no exit code.
inline constexpr const char* kNotStarted = "NotStarted";

// Whether a replica with this reason ended because of its surroundings. Such an end is nobody's
// fault and is never counted.
inline bool is_disruption(std::string_view reason) {
  constexpr std::string_view kDisruptions[] = {"Evicted", "Preempted", "NodeLost", kRunnerLost};
  return std::ranges::find(kDisruptions, reason) != std::end(kDisruptions);
}

}  // namespace muster::api
