#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "trainer/folder/lease.h"
#include "trainer/folder/owner.h"

namespace muster::folder {

// Returns the reason why `job` may not train in a folder of `owner`, whether that lives or not;
// empty if it may. A job may use its own folder; that of an earlier job of its namespace and name
// if everything that decides the weights is identical; and any other if `adopt` names the owner.
// The text names `storage` and the ways out.
std::string obstacle(const std::filesystem::path& storage, const Owner& owner, const Owner& job,
                     const std::string& adopt);

// The request of a rank 0 that wants a folder.
struct ClaimRequest {
  std::filesystem::path storage;
  Owner job;
  std::string adopt;  // see obstacle
  // Finds the owner by the other files in the folder; called if owner.json is missing. May be
  // empty.
  std::function<std::optional<Owner>()> owner_by_contents;
  // Called with a sentence when the claim begins to wait. May be empty.
  std::function<void(const std::string&)> say;
};

// A job's hold on its folder, taken by its rank 0: nobody else trains there while this object
// lives.
class Claim {
 public:
  // Makes the folder if it is missing, and makes the job its owner. Waits for an earlier job of the
  // same namespace and name that has not left yet; returns null if `stop` was requested meanwhile.
  // Throws Invalid (kProtocol) if the folder belongs to another job (see obstacle), or if another
  // job, or another training without a job, lives in it; Unavailable if that cannot be seen, or if
  // the earlier job does not leave; WriteError.
  static std::unique_ptr<Claim> take(const ClaimRequest& request, const std::stop_token& stop,
                                     const LeasePace& pace = {});

  // The token is stopped by the `stop` of take(), and as soon as another job is seen to have taken
  // the folder.
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
  Lease lease_;
};

}  // namespace muster::folder
