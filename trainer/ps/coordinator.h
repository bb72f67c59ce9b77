#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/checkpoint/store.h"
#include "trainer/group/generations.h"
#include "trainer/group/rendezvous_server.h"
#include "trainer/group/storage_patience.h"
#include "trainer/ps/control.h"
#include "trainer/ps/formation.h"

namespace muster::ps {

// Rank 0's duty to the group: waits for the shards, opens a generation on them and does so
// again whenever one comes back without its state: does what a Formation says.
// Runs on a thread of its own.
class Coordinator {
 public:
  struct Setup {
    std::filesystem::path storage;
    group::Owner owner;  // the job
    int shards = 1;
    std::vector<std::string> addresses;  // of each ps, until it says so itself
    int copies = 1;                      // of each shard
    bool sync = true;
    OpenRequest request;  // all that is the same in each opening
    // Where training goes on from a checkpoint. Throws Invalid where it cannot.
    std::function<checkpoint::Position(const checkpoint::Store::Found&)> resume_at;
    std::function<void()> shard_leaving;  // a shard waits for a checkpoint
  };

  // The references must outlive it.
  Coordinator(group::RendezvousServer& rendezvous, Control& control, const checkpoint::Store& store,
              Setup setup);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Asks for the next generation, on what the shards hold; the group waits for it. Thread-safe.
  void renew();
  // What went wrong for good, if anything did: the group's phase is FAILED then, unless that is
  // for us alone (Unavailable).
  void rethrow_failure() const;

 private:
  void advance();
  void wait();
  void remind();
  void announce();
  void locate();
  void tell_copies();
  void listen_to_leaving();
  void require_lead();
  void glance_at_lead();
  void choose();
  void run();
  void fail(int exit_code, const std::string& message);

  group::RendezvousServer& rendezvous_;
  Control& control_;
  const checkpoint::Store& store_;
  const Setup setup_;
  Formation formation_;
  std::vector<std::string> addresses_;               // of each ps, as it said last
  std::unique_ptr<checkpoint::Store::Lease> lease_;  // on what shards are loading
  std::string from_;                                 // what they load, for the log
  std::chrono::steady_clock::time_point remind_;
  std::chrono::steady_clock::time_point looked_;  // whether we still lead
  group::StoragePatience patience_;
  int replicated_ = 0;   // shards, when we last told
  bool warned_ = false;  // that copies were lost, and they are not all there again
  bool asked_ = false;   // for a checkpoint, by a shard that leaves
  std::atomic<bool> renew_{false};
  std::atomic<bool> closing_{false};
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace muster::ps
