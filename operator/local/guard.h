#pragma once

#include <sys/types.h>

#include "operator/local/run_lock.h"

namespace muster::local {

// A separate process that outlives this one until it has called end_leftovers(): however this
// process ends, kill -9 included, no replica stays. It shares `lock`, so that no other `muster run`
// begins before that is done. Construct it before any thread.
class Guard {
 public:
  Guard(const JobDirectory& directory, const RunLock& lock, const std::string& mark);
  // Lets the guard do its work, and waits for it.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Descriptor alive_;  // its end of file is the news that this process has ended
  pid_t pid_ = 0;
};

}  // namespace muster::local
