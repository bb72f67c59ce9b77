#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "trainer/metrics/durations.h"

namespace muster::metrics {

enum class Kind { gauge, counter, histogram };

// Bits for the kinds of replicas. Worker 0 is a kWorker too.
inline constexpr unsigned kPs = 1, kChief = 2, kFirstWorker = 4, kWorker = 8, kEvaluator = 16;

// The upper ends of the buckets of the histogram `staleness`. A last bucket has all above.
inline constexpr std::array<double, 11> kStalenessBounds = {0,  1,   3,   7,   15,  31,
                                                            63, 127, 255, 511, 1023};

// A metric that docs/reference/metrics.md lists.
struct Description {
  std::string_view name;  // without "muster_trainer_", with its ending
  Kind kind;
  unsigned from_the_start;  // the replicas that serve it before they have anything to say, as 0
  std::string_view help;    // one line for people
  // A label that has all these values from the start; none: the name has no series before the first
  // value.
  std::string_view label = {};
  std::span<const std::string_view> values = {};
  std::span<const double> bounds = Durations::kBounds;  // of a histogram's buckets
};
std::span<const Description> descriptions();

// Returns the bits of one replica.
unsigned who_is(const std::string& role, int index);

// Returns "muster_trainer_<name><ending>": only letters, digits and _ as Prometheus requires, and
// the ending once.
std::string metric_name(std::string_view name, std::string_view ending);

// Returns one line of help for people; a name that is not in descriptions() is its own help.
std::string help_of(const std::string& full_name);

}  // namespace muster::metrics
