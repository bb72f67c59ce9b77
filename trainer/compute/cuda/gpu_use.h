#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace muster::compute::cuda {

// How a GPU is used, by all processes together. What the GPU does not tell is absent.
struct GpuUse {
  // The share of the last second or less in which a kernel ran: 0 to 1.
  std::optional<double> utilization = {};
  std::optional<uint64_t> memory_used = {};    // bytes
  std::optional<uint64_t> memory = {};         // bytes that there are
  std::optional<double> watts = {};            // power that is drawn
  std::optional<uint64_t> memory_errors = {};  // uncorrected ones, since the driver was loaded
  bool operator==(const GpuUse&) const = default;
};

// Returns the use of each GPU of a process, by ordinals. Throws Unavailable if the driver does not
// answer for one of them.
using LookAtGpus = std::function<std::vector<GpuUse>()>;

}  // namespace muster::compute::cuda
