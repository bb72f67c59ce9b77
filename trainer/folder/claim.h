#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "trainer/folder/folder_lease.h"
#include "trainer/folder/owner.h"

namespace muster::folder {

// Returns why `job` may not train in a folder of `owner`, which may be running or not; "" if it
// may. A job may use its own folder; the folder of an earlier job with its namespace and name, if
// all settings that decide the weights are identical; and any other folder if `adopt` names the
// owner. The text names `storage` and what the user can do.
std::string obstacle(const std::filesystem::path& storage, const Owner& owner, const Owner& job,
                     const std::string& adopt);

// The request of a rank 0 that wants a folder.
struct ClaimRequest {
  std::filesystem::path storage;
  Owner job;
  std::string adopt;  // see obstacle
  // Finds the owner from the other files in the folder. Called if owner.json is missing. May be
  // empty.
  std::function<std::optional<Owner>()> owner_by_contents;
  // Called with a sentence when the claim begins to wait. May be empty.
  std::function<void(const std::string&)> say;
};

// A job's claim on its folder, taken by the job's rank 0: no other process trains there while this
// object lives.
class Claim {
 public:
  // Creates the folder if it is missing, and makes the job its owner. Waits for an earlier job with
  // the same namespace and name that has not left yet; returns null if `stop` was requested
  // meanwhile. Throws Invalid (kProtocol) if the folder belongs to another job (see obstacle()), or
  // if another job, or a training without a job, is running in it; Unavailable if this cannot be
  // found out, or if the earlier job does not leave; and WriteError.
  static std::unique_ptr<Claim> take(const ClaimRequest& request, const std::stop_token& stop,
                                     const LeasePace& pace = {});

  // The token is stopped by the `stop` of take(), and as soon as this process sees that another job
  // has taken the folder.
  std::stop_token token() const { return lost_.get_token(); }
  // Throws Invalid (kProtocol), naming the other job, if one has taken the folder.
  void require_held() const;

 private:
  Claim(std::filesystem::path storage, std::string uid, const std::stop_token& stop,
        const LeasePace& pace);
  void watch();
  void doubt(const std::string& why);

  const std::filesystem::path storage_;
  const std::string uid_;
  std::stop_source lost_;
  std::atomic<bool> taken_{false};
  bool doubtful_ = false;  // used by the lease's thread alone
  std::stop_callback<std::function<void()>> on_stop_;
  FolderLease lease_;
};

}  // namespace muster::folder
