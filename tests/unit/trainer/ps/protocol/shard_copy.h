#pragma once

#include <map>
#include <set>

#include "tests/unit/trainer/ps/protocol/simulated_job.h"
#include "trainer/ps/shard/replicated_shard.h"

namespace muster::ps::protocol {

// A ps's copy of a shard: a ReplicatedShard behind streams, in place of ShardHost, ExchangeStreams,
// FollowStreams and StandbyLink.
class ShardCopy {
 public:
  // `owner` is the process that holds the copy.
  ShardCopy(SimulatedJob& job, const Process& owner, int id, int shard);

  // These return a control call's answer. They throw Unavailable.
  Message open(const OpenRequest& request);
  Message snapshot(const SnapshotRequest& request) { return hosted_.snapshot(request); }
  Message write(const WriteRequest& request);

  void exchange(int stream, PushMessage& message);
  void follow(int stream, const ForwardMessage& message);
  void acknowledged(const Acknowledgement& reply);
  // Called when a stream has ended; another copy's stream changes nothing.
  void end(int stream);

  void look(const GroupView& view);
  // Whether there is a standby to reach, or a stream that leads to no standby any more.
  bool wants_standby() const;
  void reach_standby();
  bool is_standby_stream(int stream) const { return stream == standby_stream_; }
  // Breaks the stream to the standby, if there is one, for too long a time.
  void lose_standby();

  const ReplicatedShard& hosted() const { return hosted_; }

 private:
  struct Session {
    std::vector<float> gradients;
    std::vector<float> parameters;
    bool shares_memory = false;
    bool pending = false;   // a request is being answered: no transport brings another
    uint64_t sequence = 0;  // of the last request
    uint32_t rank = 0;
  };
  void deliver();
  void pump();
  void check();
  void start_clock(int stream);
  void check_bound(int stream);
  void drop_standby();
  Shard::Content load(const OpenRequest& request);

  SimulatedJob& job_;
  const Process& owner_;
  const int id_;
  const int shard_;
  ReplicatedShard hosted_;
  std::map<int, Session> sessions_;    // by stream
  std::map<int, ForwardHello> feeds_;  // by stream: those that came from other ps
  Shard::Answers answers_;
  int standby_stream_ = -1;
  int standby_ps_ = 0;
  int standby_process_ = -1;
  uint64_t standby_session_ = 0;
  // The generations (or 0) of the greeting that the standby has not answered yet, and of the last
  // one that it refused, if no news of the group has come since.
  uint64_t greeted_ = 0;
  uint64_t refused_ = 0;
  // With bounded staleness, on shard 0: the number of pushes made on each stream, and the streams
  // whose members compute.
  std::map<int, int> clocks_;
  std::set<int> computing_;
  uint64_t left_out_ = 0;
  uint64_t held_back_ = 0;
};

}  // namespace muster::ps::protocol
