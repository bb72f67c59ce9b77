#pragma once

#include <map>

#include "tests/unit/trainer/ps/protocol/attendance_client.h"
#include "trainer/ps/hosted_shard.h"

namespace muster::ps::protocol {

// A ps: a HostedShard behind streams, as ShardHost and ExchangeStreams put it there.
class ShardProcess : public Process {
 public:
  ShardProcess(World& world, int id, Place place, int attempt);
  int threads() const override { return 1; }
  bool ready(int thread) const override;
  void act(int thread) override;
  void receive(int stream, Message message) override;

  const HostedShard& hosted() const { return hosted_; }

 private:
  struct Session {
    std::vector<float> gradients;
    std::vector<float> parameters;
    bool shares_memory = false;
    bool pending = false;   // a request is being answered: no transport brings another
    uint64_t sequence = 0;  // of the last request
    uint32_t rank = 0;
  };
  void exchange(int stream, PushMessage& message);
  void deliver();
  void check();
  void count_for_bound(int stream);
  Message answer(Message& request);
  Message open(const OpenRequest& request);
  Message write(const WriteRequest& request);
  Shard::Content load(const OpenRequest& request);

  AttendanceClient attendance_;
  HostedShard hosted_;
  std::map<int, Session> sessions_;
  Shard::Answers answers_;
  ShardState reported_;
  // Bounded staleness, shard 0: who computes, and how often others have pushed since it began: each
  // by its stream.
  std::map<int, std::map<int, int>> computing_;
  uint64_t left_out_ = 0;
  uint64_t held_back_ = 0;
};

}  // namespace muster::ps::protocol
