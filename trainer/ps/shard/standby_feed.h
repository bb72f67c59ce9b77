#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/ps/shard/shard.h"

namespace muster::ps {

// The serving side of a shard's two copies: decides what is sent to the process that holds the
// other copy, the standby, and when that copy is complete. A state machine without network or
// clock: its driver holds a stream to the standby while there is one, sends what next() returns,
// and passes on the replies.
//
// greet ──▶ the standby has what this coupling gave it ──────────▶ updates from there on, together
//       └─▶ it has nothing, or something else ──▶ the state ──▶ updates, behind ──▶ together
//
// The mode together ends only when a generation opens without the standby: rank 0, which opens it,
// then knows that the standby's copy does not count. The mode behind ends with the stream.
class StandbyFeed {
 public:
  struct Message {
    Forward header;
    std::vector<Lendable::Loan> values;  // one after the other
  };

  // `process` is a unique number of this process, from which the numbers of couplings are derived.
  explicit StandbyFeed(uint64_t process) : process_(process) {}

  // Called when a generation opens: the coupling stays or, if it is 0, there is no standby.
  void open(uint64_t coupling, Shard& shard);
  // Names the process that should hold the copy, by its incarnation.
  void name(uint64_t incarnation);
  uint64_t standby() const { return standby_; }  // 0: none
  uint64_t coupling() const { return coupling_; }
  // A number that changes whenever an open stream has become useless.
  uint64_t session() const { return session_; }

  // Called when a stream to the standby is open. Returns the first message on it.
  Message greet(const OpenRequest& opening);
  // Returns the next message to send, if there is one.
  std::optional<Message> next(const Shard& shard);
  // Handles a reply. Returns false if the stream has become useless.
  bool acknowledged(const Acknowledgement& reply, Shard& shard, Shard::Answers& answers);
  // Called when the stream has ended.
  void cut(Shard& shard, Shard::Answers& answers);

  // Asks the standby for the digest of its state at the shard's present step, if it is together and
  // updates its state to the same bits.
  void compare(const Shard& shard);
  // Whether the standby was asked about `step` and may still answer.
  bool awaits_digest(uint64_t step, const Shard& shard) const;
  // Returns the standby's digest of its state at `step`.
  std::optional<uint32_t> digest(uint64_t step) const;

  // Whether the standby has confirmed, in the mode together, that it knows that its copy is whole.
  bool standby_is_whole() const { return standby_is_whole_; }

  // Called when there has been no stream for too long.
  void lose() { lost_ = true; }
  bool lost() const { return lost_; }

 private:
  enum class Phase { idle, greeted, flowing };
  struct Comparison {
    uint64_t step = 0;
    bool asked = false;
    std::optional<uint32_t> digest;
  };
  bool is_together(const Shard& shard) const;
  bool begin(const Acknowledgement& reply, Shard& shard);

  uint64_t process_;
  uint64_t standby_ = 0;
  uint64_t session_ = 0;
  uint64_t couplings_ = 0;  // number of couplings so far
  uint64_t coupling_ = 0;
  Phase phase_ = Phase::idle;
  std::optional<Shard::State> state_;  // the state still to be sent
  uint64_t cursor_ = 0;                // the next update to send
  bool tell_whole_ = false;
  bool alike_ = false;  // the standby updates its state to the same bits
  std::optional<Comparison> comparison_;
  bool standby_is_whole_ = false;
  bool lost_ = false;
};

}  // namespace muster::ps
