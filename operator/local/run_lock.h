#pragma once

#include <chrono>
#include <optional>

#include "common/system/descriptor.h"
#include "operator/local/job_directory.h"
#include "operator/local/processes/process_table.h"

namespace muster::local {

// The lock of the one `muster run` of a directory: flock on its file `lock`, which names the
// process.
class RunLock {
 public:
  // Throws Unavailable, naming the process, if another one runs the job; WriteError if the
  // directory cannot be written. After the death of a process its Guard holds the lock for the
  // moment that it takes to end the replicas; the constructor waits for that moment.
  explicit RunLock(const JobDirectory& directory);

  int descriptor() const { return file_.get(); }

  // Waits until nobody holds the lock: after the death of a `muster run` its guard holds it for the
  // moment that it takes to end the replicas. Returns false if that takes longer than `most`.
  static bool wait_until_free(const JobDirectory& directory, std::chrono::seconds most);

  // Returns the process that had the lock last, whether it lives or not.
  static std::optional<ProcessIdentity> last_holder(const JobDirectory& directory);

  // Returns the process that runs the job now, if there is one.
  static std::optional<ProcessIdentity> holder(const JobDirectory& directory);

 private:
  Descriptor file_;
};

// Sends SIGKILL to the processes that a dead `muster run` of this directory left behind, by
// recorded pid and start time, and removes the pid files; then to all others that have `mark`,
// "NAME=value", in their environment, as each process of a replica has. Returns how many processes
// it ended.
int end_leftovers(const JobDirectory& directory, const std::string& mark);

}  // namespace muster::local
