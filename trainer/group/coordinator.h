#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/threads/mutex.h"
#include "trainer/checkpoint/store/store.h"
#include "trainer/group/formation.h"
#include "trainer/group/rendezvous_server.h"
#include "trainer/group/storage_patience.h"

namespace muster::group {

// Set the group's view while there is no generation, and when we shall open no more: then its peers
// look for our successor.
void suspend(GroupView& view);
void step_down(GroupView& view);

// Rank 0's duty to the group, however the group trains: executes the steps of a Formation for as
// long as it leads, and tells the group about permanent errors. It runs on a thread of its own.
class Coordinator {
 public:
  struct Setup {
    std::filesystem::path storage;
    std::string job_uid;
    // Returns the position at which training resumes from a checkpoint. Throws Invalid if it
    // cannot.
    std::function<checkpoint::Position(const checkpoint::Store::Found&)> resume_at;
  };

  virtual ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Asks for the next generation, built on the state that the group holds; the group waits until
  // then. Thread-safe.
  void renew();
  // Opens no more generations from now on. Returns our newest one; all later publishing belongs to
  // it.
  uint64_t hold();
  // Throws the permanent error, if there was one. The group's phase is FAILED then, unless the
  // error concerns only us (Unavailable).
  void rethrow_failure() const;

 protected:
  // The references must outlive this object.
  Coordinator(RendezvousServer& rendezvous, const checkpoint::Store& store, Setup setup);

  // Derived classes call these last in their constructor and first in their destructor.
  void start();
  // `cancel` ends what act() may be waiting for.
  void stop(const std::function<void()>& cancel = [] {});

  virtual Formation& formation() = 0;
  virtual void look(const PeerRegistry& registry) = 0;  // calls the formation's look()
  // Does the next step, unless it is claiming, choosing or looking; publishing of earlier
  // generations is fenced off already. Throws as the storage and the group do.
  virtual void act() = 0;
  virtual void watch() {}                           // now and then, while a generation runs
  virtual bool needs_all() const { return false; }  // a generation that runs waits for who is lost
  virtual std::string change() const = 0;  // why a generation that ran must end; for the log
  RendezvousServer& rendezvous() { return rendezvous_; }
  const checkpoint::Store& store() const { return store_; }

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void advance_unless_held();
  void advance() MUSTER_REQUIRES(advancing_);
  void claim() MUSTER_REQUIRES(advancing_);
  void choose();
  void wait();
  void abandon();
  // Throws if another process has taken the lead, and Unavailable if that cannot be seen.
  void require_lead();
  // Does the same from time to time, but ignores a storage that cannot be read: that is no reason
  // for a new generation.
  void glance_at_lead();
  // Logs who is missing, whenever that changes and every half a minute.
  void remind();
  void fail(int exit_code, const std::string& message);

  RendezvousServer& rendezvous_;
  const checkpoint::Store& store_;
  const Setup setup_;
  std::unique_ptr<checkpoint::Lease> lease_;  // on the checkpoint being restored
  std::string missing_;                       // as logged last
  Clock::time_point remind_;
  Clock::time_point looked_;  // the last check that we still lead
  StoragePatience patience_;
  Mutex advancing_;
  uint64_t newest_ MUSTER_GUARDED_BY(advancing_) = 0;  // opened by us
  std::atomic<bool> held_{false};                      // once it is set, no advance() begins
  std::atomic<bool> renew_{false};
  std::atomic<bool> closing_{false};
  mutable Mutex mutex_;
  std::exception_ptr failure_ MUSTER_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster::group
