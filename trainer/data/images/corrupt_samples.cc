#include "trainer/data/images/corrupt_samples.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/program/log.h"

namespace muster::data {

namespace {

constexpr uint64_t kMostNamed = 10;
constexpr const char* kDamaged = "damagedSamples";
constexpr const char* kOdd = "irregularSamples";

}  // namespace

CorruptSamples::CorruptSamples(uint64_t samples, double most_share)
    : samples_(samples), most_share_(most_share) {}

CorruptSamples::~CorruptSamples() {
  const MutexLock lock(mutex_);
  const auto tell_all = [&](const char* what, const char* counted, uint64_t count) {
    if (count > kMostNamed)
      log::warning(fmt::format("{} of {} samples were {}, and the first {} of these were named",
                               count, samples_, what, kMostNamed),
                   {{counted, count}});
  };
  tell_all("damaged", kDamaged, all_damaged());
  tell_all("irregular and used", kOdd, odd_count_);
}

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
  odd_.resize(samples_);
  if (odd_.at(sample)) return;
  odd_[sample] = true;
  tell("an irregular sample is used", what, kOdd, ++odd_count_);
}

uint64_t CorruptSamples::count() const {
  const MutexLock lock(mutex_);
  return all_damaged();
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
  log::warning(fmt::format("{}: {}{}", what, why,
                           count == kMostNamed ? "; further ones are counted, not named" : ""),
               {{counted, count}});
}

}  // namespace muster::data
