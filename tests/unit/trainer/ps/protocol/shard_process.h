#pragma once

#include <memory>
#include <vector>

#include "tests/unit/trainer/ps/protocol/shard_copy.h"
#include "tests/unit/trainer/simulation/simulated_client.h"

namespace muster::ps::protocol {

// A ps: the copies of the shards that it is home to.
class ShardProcess : public Process {
 public:
  ShardProcess(SimulatedJob& job, int id, Place place, int attempt);
  int threads() const override { return 1 + static_cast<int>(copies_.size()); }
  bool ready(int thread) const override;
  void act(int thread) override;
  void receive(int stream, Side side, Message message) override;

  // Returns null if this ps is not home to the shard.
  const ReplicatedShard* hosted(int shard) const;
  // Makes the n-th of its copies lose its standby, as if unreachable for too long.
  void lose_standby(int n) { copies_[static_cast<size_t>(n)]->lose_standby(); }

 private:
  ShardCopy* copy_of(uint32_t shard);
  Message answer(Message& request);
  std::vector<ShardState> states() const;

  SimulatedJob& job_;
  SimulatedClient client_;
  std::vector<std::unique_ptr<ShardCopy>> copies_;
  std::vector<ShardState> reported_;
};

}  // namespace muster::ps::protocol
