#pragma once

#include <map>
#include <memory>
#include <optional>

#include "tests/unit/trainer/ps/protocol/simulated_job.h"
#include "trainer/ps/member/exchange.h"

namespace muster::ps::protocol {

// A member's training loop over ps::Exchange, as loop::PsSynchronizer runs it.
class Member {
 public:
  enum class State {
    outside,   // waits for a generation
    aligning,  // fetches its parameters
    ready,     // to compute the next step
    pushing,   // waits for the parameters after it
    finished,  // no step is left in this generation
  };

  Member(SimulatedJob& job, int id, uint32_t rank);
  ~Member();

  bool ready(const GroupView& view) const;
  void act(const GroupView& view);
  // Returns false if the stream is not one of this member's.
  bool receive(int stream, const Message& message);

  State state() const { return state_; }
  uint64_t generation() const { return generation_; }
  uint64_t step() const { return step_; }
  // Called when the group has changed: starts again.
  void leave();

 private:
  class Link;
  std::unique_ptr<ShardLink> connect(const LinkEnd& end);
  void enter(const GroupView& view);
  void compute();
  void look(const GroupView& view);
  void settle(const Exchange::Result& result, const GroupView& view);

  SimulatedJob& job_;
  const int id_;
  const uint32_t rank_;
  std::map<int, Link*> links_;  // by stream
  Exchange exchange_;
  std::vector<float> parameters_;
  std::vector<float> gradient_;
  State state_ = State::outside;
  bool changed_ = false;  // a link, since we last looked
  uint64_t generation_ = 0;
  uint64_t position_generation_ = 0;  // that step_ is of
  uint64_t step_ = 0;
  std::optional<uint64_t> ticket_;
};

}  // namespace muster::ps::protocol
