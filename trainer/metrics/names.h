#pragma once

#include <span>
#include <string>
#include <string_view>

namespace muster::metrics {

enum class Kind { gauge, counter, histogram };

// Bits for the kinds of replicas. Worker 0 is a kWorker too.
inline constexpr unsigned kPs = 1, kChief = 2, kFirstWorker = 4, kWorker = 8, kEvaluator = 16;

// A metric that docs/reference/metrics.md lists.
struct Description {
  std::string_view name;  // without "muster_trainer_", with its ending
  Kind kind;
  unsigned from_the_start;  // the replicas that serve it before they have anything to say, as 0
  std::string_view help;    // one line for people
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
