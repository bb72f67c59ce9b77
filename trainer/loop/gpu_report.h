#pragma once

#include <memory>
#include <vector>

#include "trainer/compute/cuda/gpu_watch.h"
#include "trainer/compute/device.h"
#include "trainer/metrics/reporter.h"

namespace muster::loop {

// Shows in `reporter`, from now on, how those of the devices that are GPUs are used: in the metrics
// gpu_* with a label `gpu`, which is the ordinal, and in /progress: {"gpus": [{"utilization": 0.93,
// "memoryUsed": 2147483648, "memory": 85899345920, "watts": 412.5, "memoryErrors": 0}]}. What is
// not known is absent there, and not a number in the metrics. Where the driver's library for that
// is missing, the log says so, and nothing is shown.
void report_gpus(metrics::Reporter& reporter, const std::vector<compute::Device>& devices);
// Does the same for the GPUs that `watch` looks at.
void report_gpus(metrics::Reporter& reporter,
                 const std::shared_ptr<const compute::cuda::GpuWatch>& watch);

}  // namespace muster::loop
