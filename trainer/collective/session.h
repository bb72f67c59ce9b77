#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>

#include "trainer/collective/contribution.h"
#include "trainer/compute/loss_sums.h"
#include "trainer/compute/optimizer.h"
#include "trainer/compute/tree_sum.h"

namespace muster::collective {

// A generation of a collective, as one of its members has it: parameters and optimizer slots of a
// step, and where gradients meet. One caller.
class Session {
 public:
  enum class Outcome {
    ok,
    over,         // the generation is: settle(); the step may be made all the same
    interrupted,  // asked to stop while waiting; likewise
  };
  // Ends a wait. `over` is asked some fifty times a second.
  struct Watch {
    std::stop_token stop;
    std::function<bool()> over;
    bool ended() const { return stop.stop_requested() || over(); }
  };
  // Of what the whole group's rows came to: what the update is made with.
  using Arguments = std::function<compute::UpdateArguments(const compute::LossSums&)>;
  struct StepResult {
    Outcome outcome = Outcome::ok;
    compute::LossSums sums;  // of the whole group
    Note note;               // of the first member; of a step that was not made it means nothing
  };
  struct Settled {
    uint64_t step = 0;
    compute::LossSums sums;  // of the step that led there, and the note
    Note note;
  };
  static constexpr std::chrono::milliseconds kGlance{20};

  virtual ~Session() = default;

  virtual std::span<float> parameters() = 0;
  // The logical replicas that this member computes, as nodes of their tree: where the sum of the
  // gradients under each is to be written.
  virtual std::span<const compute::Subtree> nodes() const = 0;
  virtual std::span<float> gradients(size_t node) = 0;

  // Floats [0, end) of all our nodes' gradients are what step() will find there: they may leave
  // already. From any thread, one at a time or not, before step() is called.
  virtual void complete(size_t /*end*/) {}
  // Contributes what was written; comes back with the parameters after `step`, which must be where
  // the session stands.
  virtual StepResult step(uint64_t step, const Contribution& contribution,
                          const Arguments& arguments, const Watch& watch) = 0;
  // That the member computed for the last step that was made.
  virtual double seconds(int member) const = 0;

  // Takes no further part: nothing that this process or a lost one does changes the state any more.
  // What it comes to. Idempotent.
  virtual Settled settle() = 0;
  // Copies the state to where it is wanted: between two steps, or once settled.
  virtual void copy(std::span<float> parameters, std::span<const std::span<float>> slots,
                    const Arguments& arguments) = 0;
};

}  // namespace muster::collective
