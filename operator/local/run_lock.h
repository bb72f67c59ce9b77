#pragma once

#include <chrono>
#include <optional>

#include "common/descriptor.h"
#include "operator/local/job_directory.h"
#include "operator/local/process_table.h"

namespace muster::local {

// Held by the one `muster run` of a directory: flock on its file `lock`, which names the process.
class RunLock {
 public:
  // Throws Unavailable, naming the process, if another one runs the job; WriteError if the
  // directory cannot be written. A lock whose process has died is still held by its Guard for the
  // moment that it takes to end the replicas: that moment is waited for.
  explicit RunLock(const JobDirectory& directory);

  int descriptor() const { return file_.get(); }

  // Waits until nobody holds it: after a `muster run` has died its guard does, for the moment that
  // it takes to end the replicas. False if that takes longer than `most`.
  static bool wait_until_free(const JobDirectory& directory, std::chrono::seconds most);

  // Who runs the job now, if anybody does.
  static std::optional<ProcessIdentity> holder(const JobDirectory& directory);

 private:
  Descriptor file_;
};

// SIGKILLs what a `muster run` of this directory that died left behind, by recorded pid and start
// time, and removes the pid files. `mark`, "NAME=value", is in the environment of each of its
// processes. Returns how many processes it ended.
int end_leftovers(const JobDirectory& directory, const std::string& mark);

}  // namespace muster::local
