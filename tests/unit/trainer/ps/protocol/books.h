#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/unit/trainer/ps/protocol/setting.h"
#include "tests/unit/trainer/simulation/simulated_storage.h"
#include "trainer/compute/optimizer.h"
#include "trainer/ps/shard/shard.h"

namespace muster::ps::protocol {

// The work of a simulated job and its expected results. All numbers are exact in float32.
//
// Sync: a gradient is a function of rank, step and every bit of the parameters that it was computed
// on. So a push that is lost, counted twice or computed on parameters of several steps shows in all
// later numbers, and likewise a loss that it reports. With backup workers each choice of the
// members left out gives another right result; all shards must have the same one.
//
// Async: ticket t adds 1 to parameter t of every shard. The parameters count how often each batch
// was applied, and shard 0's sums count as many.
class Books {
 public:
  explicit Books(const Setting& setting);

  size_t floats_per_shard() const;
  compute::Range range(int shard) const;
  std::unique_ptr<Shard> make_shard(int shard) const;
  Shard::Content initial(int shard) const;

  std::vector<float> gradient(uint32_t rank, uint64_t step, uint64_t ticket,
                              std::span<const float> parameters) const;
  compute::LossSums sums(uint32_t rank, uint64_t step, uint64_t ticket) const;
  uint64_t tickets_per_epoch() const;

  struct Held {  // what somebody has of a shard
    int shard = 0;
    std::span<const float> parameters;
    std::vector<std::span<const float>> slots;
    const checkpoint::EpochSums* sums = nullptr;  // null: not known
  };

  // Each throws Violation if something differs from the undisturbed job. `who` names the process in
  // the message.
  void check_parameters(const std::string& who, uint64_t step, std::span<const float> parameters,
                        const checkpoint::EpochSums* sums) const;
  void check_shard(const std::string& who, uint64_t step, const Held& held) const;
  void check_folder(const SimulatedStorage::Folder& folder) const;
  void check_applied(const SimulatedStorage::Folder& final, bool exactly_once) const;
  // Async: called when a batch is about to be pushed.
  void count_push(uint64_t ticket) { ++pushes_.at(ticket); }

  uint64_t total() const { return static_cast<uint64_t>(setting_.steps); }

 private:
  struct Moment {
    compute::Floats parameters;
    std::vector<compute::Floats> slots;
    checkpoint::EpochSums sums;
  };
  void run_undisturbed();
  Moment after(const Moment& before, uint64_t step, unsigned contributors) const;
  bool may_contribute(unsigned contributors) const;
  bool holds(const Moment& moment, const Held& held) const;
  void check_applied_sums(const std::string& who, const Held& held) const;
  void check_held(const std::string& who, uint64_t step, std::span<const Held> all) const;

  const Setting setting_;
  compute::ParameterLayout layout_;
  std::unique_ptr<compute::Optimizer> optimizer_;
  compute::Schedule schedule_;
  std::vector<std::vector<Moment>> moments_;  // sync, by step: what the job may have come to
  std::vector<uint64_t> pushes_;              // async, by ticket
};

}  // namespace muster::ps::protocol
