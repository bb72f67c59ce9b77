#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "trainer/group/rendezvous_server.h"
#include "trainer/group/storage_patience.h"

namespace muster::group {

// What a group is told while there is no generation, and when there will be none from us: so that
// whoever attends looks for our successor.
void suspend(GroupView& view);
void step_down(GroupView& view);

// Rank 0's duty to the group, whatever that trains by: opens a generation and the next one whenever
// that is needed, for as long as it leads, and tells the group what went wrong for good. On a
// thread of its own.
class Coordinator {
 public:
  virtual ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Asks for the next generation, on what the group holds; it waits for that. Thread-safe.
  void renew();
  // Opens no generation any more; the newest of ours. What is published from here on is of that.
  uint64_t hold();
  // What went wrong for good, if anything did: the group's phase is FAILED then, unless that is
  // for us alone (Unavailable).
  void rethrow_failure() const;

 protected:
  // The references must outlive it.
  Coordinator(RendezvousServer& rendezvous, std::filesystem::path storage, std::string job_uid);

  // Derived classes call these last in their constructor and first in their destructor.
  void start();
  // `cancel` ends what advance() may be waiting for.
  void stop(const std::function<void()>& cancel = [] {});

  // Does what is next, or waits until something changes. Throws as the storage and the group do.
  virtual void advance() = 0;
  // A generation runs, and nothing is to be done.
  virtual bool watching() const = 0;
  // What was under way has failed: from the beginning again.
  virtual void abandon() = 0;
  // Whether somebody who has opened this generation has taken the lead from us.
  virtual bool superseded_by(uint64_t newest) const = 0;

  bool take_renewal() { return renew_.exchange(false); }
  bool closing() const { return closing_; }
  // Throws where another has taken the lead, and Unavailable where that cannot be seen.
  void require_lead();
  // The same, from time to time; a storage that cannot be read is no reason to begin anew.
  void glance_at_lead();
  // Says who is missing, where that has changed and every half a minute.
  void remind();
  RendezvousServer& rendezvous() { return rendezvous_; }
  uint64_t open_generation(uint64_t above);

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void advance_unless_held();
  void fail(int exit_code, const std::string& message);

  RendezvousServer& rendezvous_;
  const std::filesystem::path storage_;
  const std::string job_uid_;
  std::string missing_;  // as we said last
  Clock::time_point remind_;
  Clock::time_point looked_;  // whether we still lead
  StoragePatience patience_;
  std::mutex advancing_;
  bool held_ = false;    // guarded by advancing_, as is
  uint64_t newest_ = 0;  // opened by us
  std::atomic<bool> renew_{false};
  std::atomic<bool> closing_{false};
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace muster::group
