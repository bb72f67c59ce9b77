#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "trainer/collective/contribution.h"
#include "trainer/compute/loss_sums.h"
#include "trainer/compute/optimizer.h"
#include "trainer/compute/parameter_layout.h"
#include "trainer/compute/tree_sum.h"

namespace muster::collective {

class HostSession;

// One member's part in a generation of a collective: it holds the parameters and optimizer slots of
// a step, and adds up the members' gradients. For one caller.
class Session {
 public:
  enum class Outcome {
    ok,
    over,         // the generation has ended: settle(); the step may still be made
    interrupted,  // a stop was requested while waiting; the step may still be made
    differs,      // the step was made, and not all members have the same state after it
  };
  // The conditions that end a wait. `over` is called some fifty times a second.
  struct Watch {
    std::stop_token stop;
    std::function<bool()> over;
    bool ended() const { return stop.stop_requested() || over(); }
  };
  // Returns the update's arguments, given the loss sums of the whole group.
  using Arguments = std::function<compute::UpdateArguments(const compute::LossSums&)>;
  struct StepResult {
    Outcome outcome = Outcome::ok;
    compute::LossSums sums;     // sums of the whole group
    Note note;                  // the first member's note; only valid if the step was made
    bool compared = false;      // all members have the same state after the step
    std::vector<int> odd;       // for `differs`: the result of odd_members()
    double update_seconds = 0;  // time that this member needed for its part of the update
    uint64_t bytes = 0;         // sent and received by TCP since the result before
  };
  struct Settled {
    uint64_t step = 0;
    compute::LossSums sums;  // sums (and note) of the step that led to `step`
    Note note;
  };
  static constexpr std::chrono::milliseconds kGlance{20};

  virtual ~Session() = default;

  // Contributes the computed gradients, and returns when the parameters are those after `step`,
  // which must be the session's current step. If the first member's contribution says so, members
  // with separate states compare them after the step.
  virtual StepResult step(uint64_t step, const Contribution& contribution,
                          const Arguments& arguments, const Watch& watch) = 0;
  // Returns the computing time of `member` in the last finished step.
  virtual ComputingTime time(int member) const = 0;

  // Ends this member's part: no action of this process or of a lost one changes the state any more.
  // Returns the position of the state. Idempotent.
  virtual Settled settle() = 0;
  // Copies the state to `parameters` and `slots`. Call this between two steps, or after settle().
  virtual void copy(std::span<float> parameters, std::span<const std::span<float>> slots,
                    const Arguments& arguments) = 0;
  // Copy the floats `range` of the parameters, or of a slot. Call these between two steps.
  virtual void read_parameters(compute::Range range, std::span<float> to) = 0;
  virtual void read_slot(size_t index, compute::Range range, std::span<float> to) = 0;
  // Returns this session if its state and gradients are in the host's memory; else null.
  virtual HostSession* hosted() { return nullptr; }
};

// A session whose state and gradients are in the host's memory.
class HostSession : public Session {
 public:
  HostSession* hosted() final { return this; }
  virtual std::span<float> parameters() = 0;
  // A slot of the optimizer, to be read between two steps.
  virtual std::span<const float> slot(size_t index) const = 0;
  // This member's logical replicas, as nodes of the replicas' tree. The caller writes the sum of
  // the gradients of nodes()[i] to gradients(i).
  virtual std::span<const compute::Subtree> nodes() const = 0;
  virtual std::span<float> gradients(size_t node) = 0;

  // Notes that floats [0, end) of all our nodes' gradients are final and may be sent. Any threads
  // may call this, also at the same time, before step().
  virtual void complete(size_t /*end*/) {}

  void read_parameters(compute::Range range, std::span<float> to) final {
    std::ranges::copy(parameters().subspan(range.begin, range.size()), to.begin());
  }
  void read_slot(size_t index, compute::Range range, std::span<float> to) final {
    std::ranges::copy(slot(index).subspan(range.begin, range.size()), to.begin());
  }
};

}  // namespace muster::collective
