#pragma once

#include <span>

#include "trainer/compute/engine.h"

namespace muster::compute {

// An engine for a group that has parameters and gradients in memory of the host. Where the engine
// can address that, it computes in it and nothing is copied; else parameters are copied to its
// device and gradients from there. The engine has its own memory again when this object goes.
class HostedEngine {
 public:
  // The engine must outlive it.
  explicit HostedEngine(Engine& engine);
  ~HostedEngine();
  HostedEngine(const HostedEngine&) = delete;
  HostedEngine& operator=(const HostedEngine&) = delete;

  Engine& engine() { return engine_; }

  // The parameters to compute with, layout().size() floats, which must live until others are
  // loaded. To be called again after each change of them.
  void load(std::span<float> parameters);
  // The engine has its own memory again, with the parameters that were loaded last.
  void release();

  // As Engine::compute_gradients, into `gradients`: layout().size() floats, whose padding is zero.
  LossSums compute_gradients(const Batch& batch, std::span<float> gradients,
                             const Engine::OnComplete& on_complete = {});

 private:
  LossSums compute_and_copy(const Batch& batch, std::span<float> gradients,
                            const Engine::OnComplete& on_complete);

  Engine& engine_;
  const bool addressable_;
  std::span<float> parameters_;
};

}  // namespace muster::compute
