#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/ps/shard/messages.h"
#include "trainer/ps/shard/shard.h"
#include "trainer/ps/shard/standby_feed.h"

namespace muster::ps {

// A shard through the generations that open on it: who may open one, what it starts from, where its
// steps count from, and the copies that checkpoints are written from. A state machine as Shard is:
// no files, clock or locks.
//
// It serves members, or is the second copy of a shard that another process serves: that one's
// feed() gives it its state, then each update.
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

  // `process`: a number that no other process has, its Hello's incarnation.
  explicit HostedShard(Shard shard, uint64_t process)
      : shard_(std::move(shard)), feed_(process), process_(process) {}

  // Whether open() will call `load`, unless another generation is opened before.
  bool loads(const OpenRequest& request) const {
    return request.content() != OpenRequest::KEEP && request.generation() > shard_.generation();
  }
  // Opens a generation; one that is open already stays as it is. Throws Unavailable where a later
  // one is open, or what is to be kept is not there; and what `load` throws. It is then as before.
  ShardState open(const OpenRequest& request, const Load& load, Shard::Answers& answers);

  // Keeps what the shard holds, in place of what it kept before. Throws Unavailable where the
  // generation is not the current one.
  SnapshotReply snapshot(const SnapshotRequest& request);
  // What was kept. Throws Unavailable where it is not what is to be written.
  const Copy& to_write(const WriteRequest& request) const;

  // What another process's feed sends on a stream that began with `greeting`, and the reply.
  Acknowledgement follow(const ForwardHello& greeting, const Forward& message,
                         std::span<const float> values, Shard::Answers& answers);

  // To the second copy, where this one serves: as StandbyFeed has them.
  const StandbyFeed& feed() const { return feed_; }
  // What a view says of where the copy is to be.
  void name_standby(uint64_t generation, uint64_t incarnation);
  StandbyFeed::Message greet() { return feed_.greet(opening_); }
  std::optional<StandbyFeed::Message> next_forward();
  bool acknowledged(const Acknowledgement& reply, Shard::Answers& answers) {
    return feed_.acknowledged(reply, shard_, answers);
  }
  void cut(Shard::Answers& answers) { feed_.cut(shard_, answers); }
  void lose_standby() { feed_.lose(); }

  ShardState state() const;
  Shard& shard() { return shard_; }
  const Shard& shard() const { return shard_; }

 private:
  Tickets kept(const OpenRequest& request) const;
  bool superseded(const ForwardHello& greeting) const;
  bool adopt(const ForwardHello& greeting, const Forward& message, std::span<const float> values,
             Shard::Answers& answers);

  Shard shard_;
  std::optional<Copy> kept_;
  StandbyFeed feed_;
  uint64_t process_;
  OpenRequest opening_;
  uint64_t followed_ = 0;  // the coupling that made us a second copy
  bool whole_ = false;     // and we have all that any member has heard of
  checkpoint::Position base_;
  uint64_t lineage_ = 0;
  uint64_t tickets_per_epoch_ = 0;
};

}  // namespace muster::ps
