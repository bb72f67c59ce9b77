#pragma once

#include <sys/types.h>

#include "operator/local/run_lock.h"

namespace muster::local {

// A separate process that calls end_leftovers() after this process has ended, in whatever way (also
// by kill -9), so that no replica stays. The guard shares `lock`, so that no other `muster run`
// begins before end_leftovers() is done. Construct it before any thread.
class Guard {
 public:
  Guard(const JobDirectory& directory, const RunLock& lock, const std::string& mark);
  // Lets the guard do its work, and waits until it has ended.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Descriptor alive_;  // end of file tells the guard that this process has ended
  pid_t pid_ = 0;
};

}  // namespace muster::local
