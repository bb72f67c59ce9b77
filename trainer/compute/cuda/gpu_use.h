#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace muster::compute::cuda {

// The use of a GPU by all processes together. Values that the GPU does not report are absent.
struct GpuUse {
  // The share of time, in the last second or less, in which a kernel ran: 0 to 1.
  std::optional<double> utilization = {};
  std::optional<uint64_t> memory_used = {};    // bytes
  std::optional<uint64_t> memory = {};         // the GPU's whole memory in bytes
  std::optional<double> watts = {};            // present power consumption
  std::optional<uint64_t> memory_errors = {};  // uncorrected ones, since the driver was loaded
  std::optional<double> celsius = {};          // present temperature
  std::optional<double> clock = {};            // present clock of its processors, in Hz
  // Errors that the driver has reported since this process looks at the GPU, and the number (Xid)
  // of the newest one; 0: none.
  std::optional<uint64_t> xid_errors = {};
  std::optional<uint64_t> last_xid = {};
  bool operator==(const GpuUse&) const = default;
};

// Returns the use of each GPU of a process, by ordinals. Throws Unavailable if the driver does not
// answer for one of them.
using LookAtGpus = std::function<std::vector<GpuUse>()>;

}  // namespace muster::compute::cuda
