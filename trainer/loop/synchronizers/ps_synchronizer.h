#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/loop/batches/replica_gradients.h"
#include "trainer/loop/synchronizers/group_wait.h"
#include "trainer/loop/synchronizers/member_report.h"
#include "trainer/loop/synchronizers/synchronizer.h"
#include "trainer/loop/training.h"
#include "trainer/ps/group/control.h"
#include "trainer/ps/member/exchange.h"
#include "trainer/ps/member/member_progress.h"

namespace muster::loop {

// The synchronizer of a parameter-server job: it sends gradients to the shards and gets parameters
// back. If the process has several devices, their gradients are added up first.
class PsSynchronizer : public Synchronizer {
 public:
  // Makes a link to a shard at the address of its ps.
  using Connect =
      std::function<std::unique_ptr<ps::ShardLink>(const ps::LinkEnd&, const std::string& address)>;
  struct Setup : GroupWait::Setup {
    int rank = 0;
    int members = 1;
    int shards = 1;
    Connect connect;
    ps::Control* control = nullptr;  // rank 0
    MemberReport* report = nullptr;  // gets the time of each step; may be null
  };

  // The references must outlive the synchronizer.
  PsSynchronizer(Assembly& assembly, group::RendezvousClient& client, Setup setup);

  // Waits for a generation as GroupWait::wait() does, with its errors; step() throws them too.
  bool start(std::stop_token stop) override;
  bool has_next() override;
  StepResult step() override;
  uint64_t generation() const override { return generation_; }
  // Throws std::logic_error: an evaluator evaluates the checkpoints, and no member has the slots.
  void read_weights(std::span<float> to) override;
  std::unique_ptr<Snapshot> snapshot() override;

  // See ps::Exchange.
  const std::vector<ps::Exchange::Traffic>& traffic() const { return exchange_.traffic(); }

 private:
  ps::Exchange::Watch watch() const;
  std::unique_ptr<ps::ShardLink> connect(const ps::LinkEnd& end) const;
  void await_last_commit(ps::Exchange::Result& exchanged);
  Work work_of(const Turn& turn) const;
  void take_memory();
  uint64_t advance_to(uint64_t step, checkpoint::Position& position) const;
  compute::LossSums compute_gradients();

  Assembly& assembly_;
  const Setup setup_;
  GroupWait group_;
  const bool sync_;
  // The memory shared with the shards on this host. If it is null, `own_` has the parameters and
  // the sum.
  const std::unique_ptr<ps::MemberMemory> memory_;
  compute::Floats own_;
  compute::PlacedFloats parameters_;
  ReplicaGradients gradients_;
  ReplicaGradients::Target devices_;     // has the memory for the sum of gradients
  std::vector<compute::LossSums> sums_;  // loss sums of each device
  std::vector<std::string> addresses_;   // address of each ps in the generation
  ps::Exchange exchange_;
  std::stop_token stop_;
  Work work_;  // the first device's work of the next step
  uint64_t generation_ = 0;
  ps::MemberProgress progress_;  // of position()
  bool under_way_ = false;       // whether we were stopped during a step
  uint64_t floats_told_ = 0;     // exchanged floats that the results so far have told
};

}  // namespace muster::loop
