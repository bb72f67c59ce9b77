#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/checkpoint/files/manifest.h"
#include "trainer/ps/shard/messages.h"
#include "trainer/ps/shard/shard.h"
#include "trainer/ps/shard/standby_feed.h"

namespace muster::ps {

// A shard across generations: who may open a generation, the state that it starts with, the
// position from which its steps count, and the copies for checkpoints. Like Shard a state machine,
// without files, clock or locks.
//
// The shard serves members, or is the second copy of a shard that another process serves. In the
// second case the other process's feed() sends the state, and then each update.
class ReplicatedShard {
 public:
  // Returns the content that a generation starts with (INITIALIZE, RESTORE).
  using Load = std::function<Shard::Content(const OpenRequest&)>;

  // The shard's content at a step. The copy does not change when the shard commits, opens or keeps
  // something later.
  struct Copy {
    uint64_t generation = 0;
    uint64_t step = 0;
    Shard::Image image;
  };

  // `process` is a number that no other process has: the incarnation in its Hello.
  ReplicatedShard(std::unique_ptr<Shard> shard, uint64_t process)
      : shard_(std::move(shard)), feed_(process), process_(process) {}

  // Whether open() will call `load`, unless another generation is opened first.
  bool loads(const OpenRequest& request) const {
    return request.content() != OpenRequest::KEEP && request.generation() > shard_->generation();
  }
  // Opens a generation; a generation that is open already stays unchanged. Throws Unavailable if a
  // later generation is open or the content to keep is missing, and the errors of `load`. After an
  // exception nothing has changed.
  ShardState open(const OpenRequest& request, const Load& load, Shard::Answers& answers);

  // Keeps a copy of the shard's content, which replaces the copy kept before. Throws Unavailable if
  // the generation is not the current one.
  SnapshotReply snapshot(const SnapshotRequest& request);
  // Returns the kept copy. Throws Unavailable if the request names another one.
  const Copy& to_write(const WriteRequest& request) const;

  enum class Comparison {
    over,     // the second copy has the same state, or there is no second copy
    pending,  // the second copy has not answered yet
    differs,  // the second copy has another state; state() reports this from here on
  };
  // Whether the second copy was asked about the step of this copy and has answered or may still
  // answer, or was found to differ before.
  bool is_compared(const Copy& copy) const;
  // Compares `digest` of the kept copy with the second copy's answer for the same step.
  Comparison compare(const Copy& copy, uint32_t digest);
  // Returns the number of last comparisons in a row that have found a difference after which the
  // group has gone back.
  int differences_in_a_row() const { return differs_ ? 0 : differences_in_a_row_; }

  // Handles a message from another process's feed, on a stream that began with `greeting`. Returns
  // the reply.
  Acknowledgement follow(const ForwardHello& greeting, const Forward& message,
                         std::span<const float> values, Shard::Answers& answers);

  // The feed to the second copy, used while this copy serves. The functions below call those of
  // StandbyFeed.
  const StandbyFeed& feed() const { return feed_; }
  // Notes the process that should hold the second copy, from a view of the group.
  void name_standby(uint64_t generation, uint64_t incarnation);
  StandbyFeed::Message greet() { return feed_.greet(opening_); }
  std::optional<StandbyFeed::Message> next_forward();
  bool acknowledged(const Acknowledgement& reply, Shard::Answers& answers) {
    return feed_.acknowledged(reply, *shard_, answers);
  }
  void cut(Shard::Answers& answers) { feed_.cut(*shard_, answers); }
  void lose_standby() { feed_.lose(); }

  ShardState state() const;
  Shard& shard() { return *shard_; }
  const Shard& shard() const { return *shard_; }

 private:
  Tickets kept(const OpenRequest& request) const;
  bool superseded(const ForwardHello& greeting) const;
  bool adopt(const ForwardHello& greeting, const Forward& message, std::span<const float> values,
             Shard::Answers& answers);

  std::unique_ptr<Shard> shard_;
  std::optional<Copy> kept_;
  StandbyFeed feed_;
  uint64_t process_;
  OpenRequest opening_;
  uint64_t followed_ = 0;  // the coupling that made this a second copy
  bool differs_ = false;   // the second copy had another state at the same step
  int differences_in_a_row_ = 0;
  bool whole_ = false;  // it has every update that a member has heard of
  checkpoint::Position base_;
  uint64_t lineage_ = 0;
  uint64_t tickets_per_epoch_ = 0;
};

}  // namespace muster::ps
