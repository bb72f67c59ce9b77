#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "trainer/compute/cuda/gpu_use.h"

namespace muster::compute::cuda {

// Looks at a process's GPUs again and again, on its own thread. So seen() never waits, even if the
// driver hangs. Thread-safe.
class GpuWatch {
 public:
  struct Times {
    std::chrono::milliseconds period{2000};
    // The result of a look is valid for this time. (A look takes milliseconds.)
    std::chrono::milliseconds fresh{30000};
    // The longest time that the destructor waits for a look in progress.
    std::chrono::milliseconds patience{1000};
  };

  explicit GpuWatch(LookAtGpus look) : GpuWatch(std::move(look), Times()) {}
  GpuWatch(LookAtGpus look, const Times& times);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  // Returns the result of the last look; empty before the first look, after a look that threw, or
  // if the last look is not fresh.
  std::vector<GpuUse> seen() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muster::compute::cuda
