#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tests/unit/trainer/ps/protocol/simulated_job.h"
#include "trainer/ps/member/exchange.h"
#include "trainer/ps/member/member_progress.h"

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
  uint64_t step() const { return position_.step; }
  // Called when the group has changed: starts again.
  void leave();

 private:
  class Link;
  std::unique_ptr<ShardLink> connect(const LinkEnd& end);
  void enter(const GroupView& view);
  void compute();
  void look(const GroupView& view);
  void settle(const Exchange::Result& result);
  uint64_t next_ticket() const;

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
  GroupView entered_;  // the view with which we entered it
  MemberProgress progress_;
  checkpoint::Position position_;
};

}  // namespace muster::ps::protocol
