#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/documents/document.h"

namespace muster {

// A use names what a second of a job's life is spent on. Each second has exactly one use;
// docs/concepts/goodput.md says what each means.
enum class TimeUse {
  queued,
  unschedulable,
  pulling,
  starting,
  joining,
  restoring,
  computing,
  recomputing,
  input,
  communication,
  slowest,
  checkpoint,
  storage,
  evaluating,
  final_evaluation,
  exporting,
  lost,
  suspended,
  hanging,
  stopping,
  unknown,
};

struct TimeUseName {
  TimeUse use;
  const char* name;  // in status.goodput, /progress and labels of metrics
};

// Returns the names of all uses, in the order of the enum.
std::span<const TimeUseName> time_uses();
const char* name_of(TimeUse use);
// Returns nothing for a name that no use has.
std::optional<TimeUse> time_use_of(std::string_view name);

// Seconds by use.
class TimeSpent {
 public:
  double& operator[](TimeUse use) { return seconds_[static_cast<size_t>(use)]; }
  double operator[](TimeUse use) const { return seconds_[static_cast<size_t>(use)]; }
  double total() const;
  TimeSpent& operator+=(const TimeSpent& more);
  TimeSpent operator*(double factor) const;
  // Returns what was spent since `earlier`; a use with less than then counts as 0.
  TimeSpent since(const TimeSpent& earlier) const;
  bool operator==(const TimeSpent&) const = default;

  // Returns {"computing": 12.5, ...} with milliseconds, without the uses that have none.
  Json json() const;
  // Reads such an object. Unknown names, and values that are not finite numbers from 0 on, are left
  // out.
  static TimeSpent of(const Json& json);

 private:
  std::array<double, static_cast<size_t>(TimeUse::unknown) + 1> seconds_{};
};

}  // namespace muster
