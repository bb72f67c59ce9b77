#include "trainer/data/images/corrupt_samples.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/program/log.h"

namespace muster::data {

namespace {

constexpr uint64_t kMostNamed = 10;
constexpr const char* kDamaged = "damagedSamples";

}  // namespace

CorruptSamples::CorruptSamples(uint64_t samples, double most_share)
    : samples_(samples), most_share_(most_share) {}

void CorruptSamples::add(uint64_t sample, const std::string& why) {
  const MutexLock lock(mutex_);
  const bool is_new = numbers_.insert(sample).second;
  require_few(why);
  if (is_new) tell("a damaged sample is replaced by the next one", why, kDamaged, all_damaged());
}

void CorruptSamples::add_unnumbered(const std::string& why) {
  const MutexLock lock(mutex_);
  ++unnumbered_;
  require_few(why);
  tell("a damaged record is left out", why, kDamaged, all_damaged());
}

void CorruptSamples::add_odd(uint64_t sample, const std::string& what) {
  const MutexLock lock(mutex_);
  if (!odd_.insert(sample).second) return;
  tell("an irregular sample is used", what, "irregularSamples", odd_.size());
}

uint64_t CorruptSamples::count() const {
  const MutexLock lock(mutex_);
  return all_damaged();
}

uint64_t CorruptSamples::odd_count() const {
  const MutexLock lock(mutex_);
  return odd_.size();
}

void CorruptSamples::require_few(const std::string& why) const {
  const uint64_t count = all_damaged();
  if (static_cast<double>(count) > most_share_ * static_cast<double>(samples_)) {
    throw Invalid(
        fmt::format("{} (damaged samples: expected at most a share of {} of {}, as maxCorrupt "
                    "says, found {})",
                    why, most_share_, samples_, count));
  }
}

uint64_t CorruptSamples::all_damaged() const {
  return numbers_.size() + unnumbered_;
}

void CorruptSamples::tell(const char* what, const std::string& why, const char* counted,
                          uint64_t count) const {
  if (count > kMostNamed) return;
  log::warning(
      fmt::format("{}: {}{}", what, why, count == kMostNamed ? "; further ones are not named" : ""),
      {{counted, count}});
}

}  // namespace muster::data
