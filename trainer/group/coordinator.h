#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "trainer/checkpoint/store.h"
#include "trainer/group/formation.h"
#include "trainer/group/rendezvous_server.h"
#include "trainer/group/storage_patience.h"

namespace muster::group {

// What a group is told while there is no generation, and when there will be none from us: so that
// whoever attends looks for our successor.
void suspend(GroupView& view);
void step_down(GroupView& view);

// Rank 0's duty to the group, whatever that trains by: does what a Formation says, for as long as
// it leads, and tells the group what went wrong for good. On a thread of its own.
class Coordinator {
 public:
  struct Setup {
    std::filesystem::path storage;
    std::string job_uid;
    // Where training goes on from a checkpoint. Throws Invalid where it cannot.
    std::function<checkpoint::Position(const checkpoint::Store::Found&)> resume_at;
  };

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
  Coordinator(RendezvousServer& rendezvous, const checkpoint::Store& store, Setup setup);

  // Derived classes call these last in their constructor and first in their destructor.
  void start();
  // `cancel` ends what act() may be waiting for.
  void stop(const std::function<void()>& cancel = [] {});

  virtual Formation& formation() = 0;
  virtual void look(const PeerRegistry& registry) = 0;  // the formation does
  // Does what is next beside claiming, choosing and looking; what earlier generations publish is
  // fenced off already. Throws as the storage and the group do.
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
  void advance();
  void claim();
  void choose();
  void wait();
  void abandon();
  // Throws where another has taken the lead, and Unavailable where that cannot be seen.
  void require_lead();
  // The same, from time to time; a storage that cannot be read is no reason to begin anew.
  void glance_at_lead();
  // Says who is missing, where that has changed and every half a minute.
  void remind();
  void fail(int exit_code, const std::string& message);

  RendezvousServer& rendezvous_;
  const checkpoint::Store& store_;
  const Setup setup_;
  std::unique_ptr<checkpoint::Store::Lease> lease_;  // on what is being restored
  std::string missing_;                              // as we said last
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
