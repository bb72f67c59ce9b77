#pragma once

#include "trainer/compute/engine.h"

namespace muster::compute {

// An engine for a group that keeps parameters and gradients in memory that is not the engine's. An
// engine in host memory computes in the group's memory, and nothing is copied; for another engine
// the parameters are copied to its device, and the gradients back. The destructor gives the engine
// its own memory again.
class HostedEngine {
 public:
  // The engine must outlive this object.
  explicit HostedEngine(Engine& engine);
  ~HostedEngine();
  HostedEngine(const HostedEngine&) = delete;
  HostedEngine& operator=(const HostedEngine&) = delete;

  Engine& engine() { return engine_; }

  // Sets the parameters to compute with, layout().size() floats, which must live until others are
  // loaded. The caller must call load() again after each change of the parameters.
  void load(PlacedFloats parameters);
  // Gives the engine its own memory again, with the parameters that were loaded last.
  void release();

  // Does the same as Engine::compute_gradients, but writes the result to `gradients`:
  // layout().size() floats, whose padding is zero.
  LossSums compute_gradients(const Batch& batch, PlacedFloats gradients,
                             const Engine::OnComplete& on_complete = {});

 private:
  LossSums compute_and_copy(const Batch& batch, PlacedFloats gradients,
                            const Engine::OnComplete& on_complete);

  Engine& engine_;
  const bool addressable_;
  PlacedFloats parameters_;
};

}  // namespace muster::compute
