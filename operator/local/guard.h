#pragma once

#include <sys/types.h>

#include "operator/local/run_lock.h"

namespace muster::local {

// A process of its own that outlives this one for as long as it takes to end_leftovers(): whatever
// way this one ends, kill -9 included, no replica stays. It shares `lock`, so that no other `muster
// run` begins before that is done. Construct it before any thread.
class Guard {
 public:
  Guard(const JobDirectory& directory, const RunLock& lock, const std::string& mark);
  // Lets it do its work, and waits.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Descriptor alive_;  // its end of file is the news that this process has ended
  pid_t pid_ = 0;
};

}  // namespace muster::local
