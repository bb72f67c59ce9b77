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

// suspend() sets the group's view while there is no generation. step_down() sets it when this
// process will open no more generations: the peers then look for its successor.
void suspend(GroupView& view);
void step_down(GroupView& view);

// Rank 0's coordination of the group, with any strategy: executes the steps of a Formation as long
// as this process leads, and tells the group about permanent errors. It runs on a separate thread.
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

  // Asks for the next generation, which is built on the group's present state; the group waits
  // until it is open. Thread-safe.
  void renew();
  // Opens no more generations from now on. Returns our newest generation; all later publishing
  // belongs to it.
  uint64_t hold();
  // Throws the permanent error, if there was one. The group's phase is then FAILED, unless the
  // error concerns only this process (Unavailable).
  void rethrow_failure() const;

 protected:
  // The references must outlive this object.
  Coordinator(RendezvousServer& rendezvous, const checkpoint::Store& store, Setup setup);

  // Derived classes call start() last in their constructor and stop() first in their destructor.
  void start();
  // `cancel` ends any wait in act().
  void stop(const std::function<void()>& cancel = [] {});

  virtual Formation& formation() = 0;
  virtual void look(const PeerRegistry& registry) = 0;  // calls the formation's look()
  // Does the next step, unless it is claiming, choosing or looking. Earlier generations cannot
  // publish any more by then. Throws the errors of the storage and the group.
  virtual void act() = 0;
  virtual void watch() {}  // called from time to time while a generation runs
  // Whether a running generation waits for lost peers.
  virtual bool needs_all() const { return false; }
  virtual std::string change() const = 0;  // why a running generation must end; for the log
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
  // Throws if another process has taken the lead, and Unavailable if this cannot be found out.
  void require_lead();
  // Does the same from time to time, but ignores a storage that cannot be read, because that is no
  // reason for a new generation.
  void glance_at_lead();
  // Logs the missing replicas, whenever they change and every half a minute.
  void remind();
  void fail(int exit_code, const std::string& message);

  RendezvousServer& rendezvous_;
  const checkpoint::Store& store_;
  const Setup setup_;
  std::unique_ptr<checkpoint::CheckpointLease> lease_;  // lease on the checkpoint being restored
  std::string missing_;                                 // missing replicas in the last log line
  Clock::time_point remind_;
  Clock::time_point looked_;  // the last check that we still lead
  StoragePatience patience_;
  Mutex advancing_;
  uint64_t newest_ MUSTER_GUARDED_BY(advancing_) = 0;  // newest generation that we opened
  std::atomic<bool> held_{false};                      // once it is set, no advance() begins
  std::atomic<bool> renew_{false};
  std::atomic<bool> closing_{false};
  mutable Mutex mutex_;
  std::exception_ptr failure_ MUSTER_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster::group
