#pragma once

#include <chrono>
#include <optional>

#include "common/system/descriptor.h"
#include "operator/local/job_directory.h"
#include "operator/local/processes/process_table.h"

namespace muster::local {

// The lock that lets only one `muster run` use a directory: flock on the directory's file `lock`,
// which names the process.
class RunLock {
 public:
  // Throws Unavailable, naming the process, if another one runs the job; WriteError if the
  // directory cannot be written. After the death of a `muster run` its Guard holds the lock until
  // it has ended the replicas, which takes a moment; the constructor waits for it.
  explicit RunLock(const JobDirectory& directory);

  int descriptor() const { return file_.get(); }

  // Waits until nobody holds the lock, neither a `muster run` nor a Guard. Returns false after
  // `most`.
  static bool wait_until_free(const JobDirectory& directory, std::chrono::seconds most);

  // Returns the process that had the lock last, whether it lives or not.
  static std::optional<ProcessIdentity> last_holder(const JobDirectory& directory);

  // Returns the process that runs the job now, if there is one.
  static std::optional<ProcessIdentity> holder(const JobDirectory& directory);

 private:
  Descriptor file_;
};

// Sends SIGKILL to the processes that a dead `muster run` of this directory left behind, by
// recorded pid and start time, and removes the pid files; then to all other processes that have
// `mark`, "NAME=value", in their environment, which every process of a replica has. Returns the
// number of ended processes.
int end_leftovers(const JobDirectory& directory, const std::string& mark);

}  // namespace muster::local
