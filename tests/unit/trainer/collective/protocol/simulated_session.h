#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/unit/trainer/collective/protocol/books.h"
#include "tests/unit/trainer/simulation/world.h"
#include "trainer/collective/slice_update.h"

namespace muster::collective::protocol {

// A generation as one of its members has it: what collective::Session does, in as many turns as
// there are things that may come between.
class SimulatedSession {
 public:
  enum class Outcome { running, made, over };
  virtual ~SimulatedSession() = default;

  // Computes the step's gradients and contributes them.
  virtual void begin(const checkpoint::Position& position) = 0;
  virtual bool ready() const = 0;
  virtual void act() = 0;
  Outcome outcome() const { return outcome_; }
  // As Session's.
  virtual uint64_t settle() = 0;
  virtual void copy(State& to) = 0;

 protected:
  Outcome outcome_ = Outcome::running;
};

// By a real SharedState, tile by tile.
class SharedSimulatedSession : public SimulatedSession {
 public:
  SharedSimulatedSession(const Books& books, std::unique_ptr<SharedState> state, int member);
  void begin(const checkpoint::Position& position) override;
  bool ready() const override;
  void act() override;
  uint64_t settle() override;
  void copy(State& to) override;

 private:
  enum class Waiting { contributions, turn, slices };
  void update();
  std::span<float> tile(size_t buffer) const;

  const Books& books_;
  const std::unique_ptr<SharedState> state_;
  const int member_;
  SliceUpdate slice_;
  checkpoint::Position position_;
  Waiting waiting_ = Waiting::contributions;
  size_t tile_ = 0;
  bool torn_ = false;
  State next_;  // the parts that we update, as they will be
};

// A member's connections to the others of a generation that meets by TCP. Each sends what it
// contributes to all others, and once it has theirs, what it has added up: nobody has a step before
// all have contributed, but some may have it when others never will.
class WireEnd {
 public:
  WireEnd(World& world, int id, uint64_t generation, int members, int place);
  ~WireEnd();
  WireEnd(const WireEnd&) = delete;
  WireEnd& operator=(const WireEnd&) = delete;

  uint64_t generation() const { return generation_; }
  int place() const { return place_; }
  int members() const { return members_; }
  void connect(const CollectivePlan& plan);
  void send_state(int to, const State& state);
  const std::vector<float>& arrived_state() const { return state_; }

  void contribute(uint64_t step, std::vector<float> nodes);
  bool has_contributions(uint64_t step) const;
  std::vector<float> contribution(uint64_t step, int place) const;
  void send_sum(uint64_t step);
  bool has_sums(uint64_t step) const;

  void greeted(int stream, int place) { incoming_[stream] = place; }
  // False where the stream is not one of these.
  bool receive(int stream, Side side, const Message& message);
  bool broken() const { return broken_; }
  void close();

 private:
  void send(const Message& message);

  World& world_;
  const int id_;
  const uint64_t generation_;
  const int members_;
  const int place_;
  std::map<int, int> outgoing_;                                           // stream by place
  std::map<int, int> incoming_;                                           // place by stream
  std::map<std::pair<uint64_t, int>, std::vector<float>> contributions_;  // by step and place
  std::set<std::pair<uint64_t, int>> sums_;
  std::vector<float> state_;
  bool broken_ = false;
};

class WireSimulatedSession : public SimulatedSession {
 public:
  WireSimulatedSession(const Books& books, std::unique_ptr<WireEnd> end, int replicas, State state);
  void begin(const checkpoint::Position& position) override;
  bool ready() const override;
  void act() override;
  uint64_t settle() override { return step_; }
  void copy(State& to) override { to.buffers = state_.buffers; }
  WireEnd& end() { return *end_; }

 private:
  void update();

  const Books& books_;
  const std::unique_ptr<WireEnd> end_;
  const SharedState::Shape shape_;
  State state_;
  uint64_t step_;
  checkpoint::Position position_;
  bool added_up_ = false;
};

}  // namespace muster::collective::protocol
