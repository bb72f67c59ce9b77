#pragma once

#include <functional>
#include <memory>

#include "trainer/group/rendezvous_client.h"
#include "trainer/loop/batches/replica_gradients.h"
#include "trainer/loop/synchronizers/synchronizer.h"
#include "trainer/loop/training.h"
#include "trainer/ps/group/control.h"
#include "trainer/ps/member/exchange.h"

namespace muster::loop {

// The synchronizer of a parameter-server job: it sends gradients to the shards and gets parameters
// back. If the process has several devices, their gradients are added up first.
class PsSynchronizer : public Synchronizer {
 public:
  // Makes a link to a shard at the address of its ps.
  using Connect =
      std::function<std::unique_ptr<ps::ShardLink>(const ps::LinkEnd&, const std::string& address)>;
  struct Setup {
    int rank = 0;
    int members = 1;
    int shards = 1;
    Connect connect;
    ps::Control* control = nullptr;         // rank 0
    std::function<void()> rethrow_failure;  // rank 0: throws its coordinator's error
    // Other ranks: whether training is over, for when the rendezvous, which would tell it, is gone.
    // Called a few times a second.
    std::function<bool()> finished_without_us = [] { return false; };
  };

  // The references must outlive the synchronizer.
  PsSynchronizer(Assembly& assembly, group::RendezvousClient& client, Setup setup);

  // Waits for a generation, without a limit as long as the rendezvous answers. Throws Invalid if
  // the group has failed or rejects us, and Unavailable if the rendezvous is gone for good.
  bool start(std::stop_token stop) override;
  bool has_next() override;
  StepResult step() override;
  uint64_t generation() const override { return generation_; }
  // Throws std::logic_error: an evaluator evaluates the checkpoints, and no member has the slots.
  void read_weights(std::span<float> to) override;
  std::unique_ptr<Snapshot> snapshot() override;

 private:
  ps::Exchange::Watch watch() const;
  std::optional<GroupView> wait_for_generation() const;
  std::unique_ptr<ps::ShardLink> connect(const ps::LinkEnd& end) const;
  void await_last_commit(ps::Exchange::Result& exchanged);
  void settle(const GroupView& view, const ps::Exchange::Result& result);
  void go_on(const ps::Exchange::Result& result);
  Work work_of(const Turn& turn) const;
  void take_memory();
  uint64_t advance_to(uint64_t step, checkpoint::Position& position) const;
  compute::LossSums compute_gradients();

  Assembly& assembly_;
  group::RendezvousClient& client_;
  const Setup setup_;
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
  uint64_t position_generation_ = 0;  // the generation of position()
  std::optional<uint64_t> ticket_;
  bool finished_ = false;
  bool under_way_ = false;  // whether we were stopped during a step
};

}  // namespace muster::loop
