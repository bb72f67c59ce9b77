#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/compute/engine.h"
#include "trainer/compute/optimizer.h"

namespace muster::compute {

// The engines of a process, when their devices exchange gradients and parameters without the host's
// memory. Every engine has all parameters, and makes the update of a share of them.
class EngineGroup {
 public:
  // Joins the engines, which must outlive the group, of the same model. Returns null if their
  // devices cannot exchange anything; `why` says the reason, unless they are CPUs.
  static std::unique_ptr<EngineGroup> create(std::span<Engine* const> engines,
                                             const Optimizer& optimizer, std::string& why);
  virtual ~EngineGroup() = default;

  // The parameters that all engines compute with, and the optimizer's slots, are shown as if they
  // lay in one place. They may be used while no update is being made.
  virtual Memory& parameters() = 0;
  virtual std::span<Memory* const> slots() = 0;

  // Adds up the gradients that the engines have computed, in the order of tree_sum.h, and makes the
  // update. Each engine's thread calls it, with the same arguments. If it throws on one thread, it
  // throws Unavailable on all others.
  virtual void update(int engine, const UpdateArguments& arguments) = 0;
};

}  // namespace muster::compute
