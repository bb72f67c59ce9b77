#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/ps/shard/shard.h"

namespace muster::ps {

// The serving side of a shard's two copies: what goes to the process that holds the other one, its
// standby, and when that has what it takes. A state machine without network or clock: whoever
// drives it holds a stream to the standby while there is one, sends what next() returns, and says
// what came back.
//
// greet ──▶ the standby has what this coupling gave it ──────────▶ updates from there on, together
//       └─▶ it has nothing, or something else ──▶ the state ──▶ updates, behind ──▶ together
//
// Only a generation that opens without the standby ends being together: whoever opened it knows
// then that the other copy is none. While behind, the end of the stream does.
class StandbyFeed {
 public:
  struct Message {
    Forward header;
    std::vector<Lendable::Loan> values;  // one after the other
  };

  // `process`: a number that no other process has; couplings are named after it.
  explicit StandbyFeed(uint64_t process) : process_(process) {}

  // A generation opens: the coupling stays, or (0) there is no standby.
  void open(uint64_t coupling, Shard& shard);
  // The process that is to hold a copy, by its incarnation.
  void name(uint64_t incarnation);
  uint64_t standby() const { return standby_; }  // 0: nobody
  uint64_t coupling() const { return coupling_; }
  // Another number whenever a stream that is open is of no use any more.
  uint64_t session() const { return session_; }

  // A stream to the standby is open: the first message on it.
  Message greet(const OpenRequest& opening);
  // What is to be sent now, in this order.
  std::optional<Message> next(const Shard& shard);
  // False where the stream is of no use any more.
  bool acknowledged(const Acknowledgement& reply, Shard& shard, Shard::Answers& answers);
  // The stream has ended.
  void cut(Shard& shard, Shard::Answers& answers);

  // While it is together: the standby has said that it knows that it is whole.
  bool standby_is_whole() const { return standby_is_whole_; }

  // There has been no stream for too long.
  void lose() { lost_ = true; }
  bool lost() const { return lost_; }

 private:
  enum class Phase { idle, greeted, flowing };
  bool begin(const Acknowledgement& reply, Shard& shard);

  uint64_t process_;
  uint64_t standby_ = 0;
  uint64_t session_ = 0;
  uint64_t couplings_ = 0;  // made so far
  uint64_t coupling_ = 0;
  Phase phase_ = Phase::idle;
  std::optional<Shard::State> state_;  // to be sent
  uint64_t cursor_ = 0;                // the next update to send
  bool tell_whole_ = false;
  bool standby_is_whole_ = false;
  bool lost_ = false;
};

}  // namespace muster::ps
