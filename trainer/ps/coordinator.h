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
#include "trainer/group/coordinator.h"
#include "trainer/ps/control.h"
#include "trainer/ps/formation.h"

namespace muster::ps {

// Rank 0's duty to the shards: waits for them, opens a generation on them and does so again
// whenever one comes back without its state: does what a Formation says.
class Coordinator : public group::Coordinator {
 public:
  struct Setup {
    std::filesystem::path storage;
    std::string job_uid;
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
  ~Coordinator() override;

 private:
  void advance() override;
  bool watching() const override;
  void abandon() override;
  bool superseded_by(uint64_t newest) const override { return formation_.superseded_by(newest); }
  void wait();
  void announce();
  void locate();
  void tell_copies();
  void listen_to_leaving();
  void choose();

  Control& control_;
  const checkpoint::Store& store_;
  const Setup setup_;
  Formation formation_;
  std::vector<std::string> addresses_;               // of each ps, as it said last
  std::unique_ptr<checkpoint::Store::Lease> lease_;  // on what shards are loading
  std::string from_;                                 // what they load, for the log
  int replicated_ = 0;                               // shards, when we last told
  bool asked_ = false;                               // for a checkpoint, by a shard that leaves
};

}  // namespace muster::ps
