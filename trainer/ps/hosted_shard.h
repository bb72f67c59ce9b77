#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/ps/messages.h"
#include "trainer/ps/shard.h"

namespace muster::ps {

checkpoint::Position from_message(const PositionMessage& message);
PositionMessage to_message(const checkpoint::Position& position);

checkpoint::EpochSums from_messages(const EpochSumsMessages& messages);

// A shard through the generations that open on it: who may open one, what it starts from, where its
// steps count from, and the copies that checkpoints are written from. A state machine as Shard is:
// no files, clock or locks.
class HostedShard {
 public:
  // Gets what a generation is to start from (INITIALIZE, RESTORE).
  using Load = std::function<Shard::Content(const OpenRequest&)>;

  // What the shard held at a step, as it stays whatever is committed, opened or kept meanwhile.
  struct Copy {
    uint64_t generation = 0;
    uint64_t step = 0;
    Shard::Image image;
  };

  explicit HostedShard(Shard shard) : shard_(std::move(shard)) {}

  // Opens a generation; one that is open already stays as it is. Throws Unavailable where a later
  // one is open, or what is to be kept is not there; and what `load` throws. It is then as before.
  ShardState open(const OpenRequest& request, const Load& load, Shard::Answers& answers);

  // Keeps what the shard holds, in place of what it kept before. Throws Unavailable where the
  // generation is not the current one.
  SnapshotReply snapshot(const SnapshotRequest& request);
  // What was kept. Throws Unavailable where it is not what is to be written.
  const Copy& to_write(const WriteRequest& request) const;

  ShardState state() const;
  Shard& shard() { return shard_; }
  const Shard& shard() const { return shard_; }

 private:
  Shard shard_;
  std::optional<Copy> kept_;
  checkpoint::Position base_;
  uint64_t lineage_ = 0;
  uint64_t tickets_per_epoch_ = 0;
};

}  // namespace muster::ps
