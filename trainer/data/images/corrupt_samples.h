#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "common/threads/mutex.h"

namespace muster::data {

// The samples of a data set that turned out to be damaged, or irregular but usable. Each sample is
// counted once. Thread-safe.
class CorruptSamples {
 public:
  // `most_share`: the largest share of samples that may be damaged.
  CorruptSamples(uint64_t samples, double most_share);
  // Tells in the log how many there were, if that was more than were named.
  ~CorruptSamples();
  CorruptSamples(const CorruptSamples&) = delete;
  CorruptSamples& operator=(const CorruptSamples&) = delete;

  // Names a sample in the log, if it is one of the first. Throws Invalid, with `why` and the
  // counts, if too many samples are damaged by now. Throws at every further call too, because a
  // batch that was made ahead may be dropped together with its exception.
  void add(uint64_t sample, const std::string& why);
  // Does the same for a record that is too damaged to have a number.
  void add_unnumbered(const std::string& why);

  // Names an irregular sample, which is used nevertheless, in the log, if it is one of the first of
  // its kind.
  void add_odd(uint64_t sample, const std::string& what);

  uint64_t count() const;  // of the damaged ones

 private:
  void require_few(const std::string& why) const MUSTER_REQUIRES(mutex_);
  void tell(const char* what, const std::string& why, const char* counted, uint64_t count) const;
  uint64_t all_damaged() const MUSTER_REQUIRES(mutex_);

  const uint64_t samples_;
  const double most_share_;
  mutable Mutex mutex_;
  std::set<uint64_t> numbers_ MUSTER_GUARDED_BY(mutex_);
  // Has a bit for each sample, so that it stays small even if all samples are irregular. It is
  // empty until a sample is irregular.
  std::vector<bool> odd_ MUSTER_GUARDED_BY(mutex_);
  uint64_t odd_count_ MUSTER_GUARDED_BY(mutex_) = 0;
  uint64_t unnumbered_ MUSTER_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::data
