#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "trainer/compute/cuda/gpu_use.h"

namespace muster::compute::cuda {

// Looks at a process's GPUs again and again, on a thread of its own: whoever asks for what was seen
// never waits, even if the driver hangs. Thread-safe.
class GpuWatch {
 public:
  struct Times {
    std::chrono::milliseconds period{2000};
    // A look counts for this long; it takes milliseconds.
    std::chrono::milliseconds fresh{30000};
    // The destructor waits this long for a look that is under way.
    std::chrono::milliseconds patience{1000};
  };

  explicit GpuWatch(LookAtGpus look) : GpuWatch(std::move(look), Times()) {}
  GpuWatch(LookAtGpus look, const Times& times);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  // Returns what was seen last; nothing before the first look, and after one that threw or is not
  // fresh.
  std::vector<GpuUse> seen() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muster::compute::cuda
