#include "trainer/loop/gpu_report.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/program/log.h"
#include "trainer/compute/cuda/gpus.h"

namespace muster::loop {

using compute::cuda::GpuUse;
using compute::cuda::GpuWatch;
using compute::cuda::LookAtGpus;

namespace {

// Calls `show(field of /progress, metric, value)` for each number; the value is optional.
template <class Show>
void for_each_number(const GpuUse& use, const Show& show) {
  show("utilization", "gpu_utilization", use.utilization);
  show("memoryUsed", "gpu_memory_used_bytes", use.memory_used);
  show("memory", "gpu_memory_bytes", use.memory);
  show("watts", "gpu_power_watts", use.watts);
  show("memoryErrors", "gpu_memory_errors", use.memory_errors);
  show("celsius", "gpu_temperature_celsius", use.celsius);
  show("clockHertz", "gpu_clock_hertz", use.clock);
  show("xidErrors", "gpu_xid_errors", use.xid_errors);
  show("lastXid", "gpu_last_xid", use.last_xid);
}

void tell_not_shown(const std::runtime_error& error) {
  log::info(std::string("how GPUs are used is not shown: ") + error.what());
}

// Returns a function that does the same as `look` and logs the first failure.
LookAtGpus told_once(LookAtGpus look) {
  return [look = std::move(look), told = false]() mutable {
    try {
      return look();
    } catch (const std::runtime_error& error) {
      if (!std::exchange(told, true)) tell_not_shown(error);
      throw;
    }
  };
}

Json to_json(const std::vector<GpuUse>& uses) {
  Json json = Json::object();
  for (const GpuUse& use : uses) {
    Json gpu = Json::object();
    for_each_number(use, [&](const char* field, const char*, const auto& value) {
      if (value) gpu[field] = *value;
    });
    json["gpus"].push_back(std::move(gpu));
  }
  return json;
}

}  // namespace

void report_gpus(metrics::Reporter& reporter, const std::vector<compute::Device>& devices) {
  int gpus = 0;  // several devices may share a GPU
  for (const compute::Device& device : devices)
    if (device.kind == compute::DeviceKind::cuda) gpus = std::max(gpus, device.ordinal + 1);
  if (gpus == 0) return;
  try {
    report_gpus(reporter,
                std::make_shared<const GpuWatch>(told_once(compute::cuda::look_at_gpus(gpus))));
  } catch (const std::runtime_error& error) {  // training continues without these numbers
    tell_not_shown(error);
  }
}

void report_gpus(metrics::Reporter& reporter, const std::shared_ptr<const GpuWatch>& watch) {
  reporter.also_say("gpus", [watch] { return to_json(watch->seen()); });
  reporter.measure_first([&reporter, watch, shown = size_t{0}]() mutable {
    std::vector<GpuUse> uses = watch->seen();
    shown = std::max(shown, uses.size());
    uses.resize(shown);  // so that no old number stays if the values are not known any more
    for (size_t i = 0; i < shown; ++i) {
      for_each_number(uses[i], [&](const char*, const char* metric, const auto& value) {
        const double number =
            value ? static_cast<double>(*value) : std::numeric_limits<double>::quiet_NaN();
        reporter.gauge(metric, number, {{"gpu", std::to_string(i)}});
      });
    }
  });
}

}  // namespace muster::loop
