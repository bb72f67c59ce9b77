#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/collective/session.h"
#include "trainer/collective/shared_state.h"
#include "trainer/compute/aligned.h"
#include "trainer/compute/optimizer.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::collective::testing {

// A training as one process does it that computes every logical replica by itself and updates the
// whole: what any group of members must come to, to the bit. A gradient is a function of step,
// replica and the bits of the parameters, so that whatever goes wrong shows in all that follows.
class Reference {
 public:
  struct State {
    uint64_t step = 0;
    std::vector<compute::Floats> buffers;       // parameters, then slots
    bool operator==(const State& other) const;  // to the bit
    std::vector<std::span<float>> slots();
  };

  // `floats`: at least so many, in two tensors.
  Reference(const compute::OptimizerSpec& optimizer, size_t floats, int replicas,
            bool rounded = false);
  Reference(const compute::OptimizerSpec& optimizer, const compute::ParameterLayout& layout,
            int replicas, bool rounded = false);

  size_t floats() const { return layout_.size(); }
  size_t slots() const { return optimizer_->slot_names().size(); }
  int replicas() const { return replicas_; }
  const compute::Optimizer& optimizer() const { return *optimizer_; }
  SharedState::Shape shape(int members) const;

  State initial(uint64_t step = 0) const;
  State empty(uint64_t step = 0) const;
  void advance(State& state) const;

  compute::LossSums sums(uint64_t step, int replica) const;
  compute::LossSums sums(uint64_t step) const;  // of all replicas
  // The sum under a node, itself not rounded yet.
  compute::Floats gradient(uint64_t step, compute::Subtree node,
                           std::span<const float> parameters) const;
  compute::UpdateArguments arguments(uint64_t step, const compute::LossSums& all) const;

 private:
  const int replicas_;
  const bool rounded_;
  const compute::ParameterLayout layout_;
  const std::unique_ptr<compute::Optimizer> optimizer_;
};

// Without slots, with one, two and three, and those that need whole tensors.
std::vector<compute::OptimizerSpec> optimizers();
std::string name_of(const compute::OptimizerSpec& optimizer);

// A member's part of a step, as whoever trains does it; of the session's parameters.
Session::StepResult make_step(HostSession& session, const Reference& reference, uint64_t step,
                              const Session::Watch& watch, bool compare = false);
// The step's arguments as a session asks for them.
Session::Arguments arguments_of(const Reference& reference, uint64_t step);
// The session's state, which is at `step`.
Reference::State copy_of(Session& session, const Reference& reference, uint64_t step);

}  // namespace muster::collective::testing
