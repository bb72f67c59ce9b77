#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "common/threads/mutex.h"

namespace muster::data {

// The samples of a data set that turned out to be damaged, each counted once. Any thread may use
// it.
class CorruptSamples {
 public:
  // `most_share`: how many of the samples may be damaged.
  CorruptSamples(uint64_t samples, double most_share);

  // Names a sample in the log, if it is one of the first. Throws Invalid, with `why` and the
  // counts, if too many are damaged by now, each time: a batch that was made ahead may be dropped,
  // and what was thrown in it is lost then.
  void add(uint64_t sample, const std::string& why);
  // Does the same for a record that is so damaged that it has no number.
  void add_unnumbered(const std::string& why);

  uint64_t count() const;

 private:
  void require_few(const std::string& why) const MUSTER_REQUIRES(mutex_);
  void tell(const char* what, const std::string& why) const MUSTER_REQUIRES(mutex_);

  const uint64_t samples_;
  const double most_share_;
  mutable Mutex mutex_;
  std::set<uint64_t> numbers_ MUSTER_GUARDED_BY(mutex_);
  uint64_t unnumbered_ MUSTER_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::data
