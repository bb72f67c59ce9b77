#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/checkpoint/store.h"
#include "trainer/group/rendezvous_server.h"
#include "trainer/ps/control.h"

namespace muster::ps {

// Rank 0's duty to the group: waits for the shards, opens a generation on them (adopting, restoring
// or initializing, see recovery.h) and does so again whenever one comes back without its state.
// Runs on a thread of its own.
class Coordinator {
 public:
  struct Setup {
    std::filesystem::path storage;
    int shards = 1;
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

  // What went wrong for good, if anything did: the group's phase is FAILED then.
  void rethrow_failure() const;

 private:
  std::vector<uint64_t> wait_for_shards(std::vector<ShardState>& states);
  void open(const std::vector<ShardState>& states);
  bool same_shards(const std::vector<uint64_t>& incarnations) const;
  void watch(const std::vector<uint64_t>& incarnations);
  void run();
  void fail(int exit_code, const std::string& message);

  group::RendezvousServer& rendezvous_;
  Control& control_;
  const checkpoint::Store& store_;
  const Setup setup_;
  std::atomic<bool> closing_{false};
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace muster::ps
