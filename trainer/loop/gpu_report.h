#pragma once

#include <memory>
#include <vector>

#include "trainer/compute/cuda/gpu_watch.h"
#include "trainer/compute/device.h"
#include "trainer/metrics/reporter.h"

namespace muster::loop {

// Reports in `reporter`, from now on, the use of those devices that are GPUs: in the metrics gpu_*
// (the label `gpu` is the ordinal) and in /progress: {"gpus": [{"utilization": 0.93, "memoryUsed":
// 2147483648, "memory": 85899345920, "watts": 412.5, "memoryErrors": 0,
// "celsius": 61, "clockHertz": 1.98e9, "xidErrors": 0, "lastXid": 0}]}. An unknown value is left
// out in /progress, and is NaN in the metrics. If the driver's library for these values is missing,
// this is logged and nothing is reported.
void report_gpus(metrics::Reporter& reporter, const std::vector<compute::Device>& devices);
// Does the same for the GPUs of `watch`.
void report_gpus(metrics::Reporter& reporter,
                 const std::shared_ptr<const compute::cuda::GpuWatch>& watch);

}  // namespace muster::loop
