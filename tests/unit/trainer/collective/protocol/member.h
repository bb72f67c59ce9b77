#pragma once

#include <memory>

#include "tests/unit/trainer/collective/protocol/simulated_job.h"
#include "tests/unit/trainer/collective/protocol/simulated_session.h"
#include "tests/unit/trainer/simulation/simulated_client.h"
#include "trainer/collective/member_flow.h"

namespace muster::collective::protocol {

// A member's training loop, as loop::CollectiveSynchronizer and loop::train run it.
class Member {
 public:
  enum class At {
    outside,   // waits for a generation
    joining,   // by TCP: until it has the state
    between,   // two steps
    stepping,  // in one
    trained,   // no step is left in this generation
    finished,  // the job is
  };

  Member(SimulatedJob& job, const Process& process);

  bool ready() const;
  void act();
  // Ends waiting for others by TCP when the generation is over, on a thread of its own.
  bool ready_to_watch() const;
  void watch();
  // From the beginning: what was under way is over.
  void start();

  bool ready_to_attend() const { return client_.ready(); }
  void attend();
  // False where the rendezvous rejects this process.
  bool receive(int stream, Side side, const Message& message);
  void leave();

  At at() const { return at_; }
  // Between two steps, and not after the last.
  bool has_next() const;
  bool leaving() const { return leaving_; }
  // We want to leave, and may.
  bool left_out() const;
  const SimulatedClient& client() const { return client_; }
  uint64_t generation() const { return flow_.generation(); }
  const checkpoint::Position& position() const { return position_; }
  State copy();

 private:
  const GroupView& view() const { return client_.view(); }
  bool is_over() const { return !runs(view(), generation()); }
  void look();
  void settle();
  void advance(const State& state);
  void prepare(const CollectivePlan& plan, int place);
  void fail(uint64_t generation);
  State fill(const CollectivePlan& plan);
  void enter(const CollectivePlan& plan, int place);
  void open(const CollectivePlan& plan, int place);
  void join();
  void entered(const CollectivePlan& plan, std::unique_ptr<SimulatedSession> session);
  WireEnd* wire(uint64_t generation);
  void wire_receive(int stream, Side side, const Message& message);
  void report() { client_.report_now(); }

  SimulatedJob& job_;
  const Process& process_;
  SimulatedClient client_;
  MemberFlow flow_;
  bool leaving_ = false;
  At at_ = At::outside;
  std::unique_ptr<SimulatedSession> session_;
  std::unique_ptr<SharedState> memory_;  // of the generation that we have prepared for
  std::unique_ptr<WireEnd> end_;         // likewise
  State wire_state_;
  CollectivePlan joined_;  // what we join
  int replicas_ = 1;
  checkpoint::Position position_;
};

}  // namespace muster::collective::protocol
