#include "trainer/compute/cuda/runtime/nvml.h"

#include <nvml.h>

#include "common/error.h"
#include "common/system/shared_library.h"

namespace muster::compute::cuda {

struct Nvml::Library {
  explicit Library(const char* name) : file("GPU", "NVML", name, /*stays_open=*/true) {
    // nvml.h defines these names as macros for the newest versions.
    file.find(start, "nvmlInit_v2");
    file.find(device_at, "nvmlDeviceGetHandleByPciBusId_v2");
    file.find(error_text, "nvmlErrorString");
    file.find(utilization, "nvmlDeviceGetUtilizationRates");
    file.find(memory, "nvmlDeviceGetMemoryInfo");
    file.find(power, "nvmlDeviceGetPowerUsage");
    file.find(memory_errors, "nvmlDeviceGetTotalEccErrors");
  }

  // Returns false if this GPU does not report the value. Throws Unavailable for every other
  // failure.
  bool is_known(nvmlReturn_t result, const std::string& what) const {
    if (result == NVML_SUCCESS) return true;
    if (result == NVML_ERROR_NOT_SUPPORTED || result == NVML_ERROR_NO_PERMISSION) return false;
    throw Unavailable(what + ": expected success of NVML, found: " + error_text(result));
  }

  const SharedLibrary file;
  decltype(nvmlInit_v2)* start = nullptr;
  decltype(nvmlDeviceGetHandleByPciBusId_v2)* device_at = nullptr;
  decltype(nvmlErrorString)* error_text = nullptr;
  decltype(nvmlDeviceGetUtilizationRates)* utilization = nullptr;
  decltype(nvmlDeviceGetMemoryInfo)* memory = nullptr;
  decltype(nvmlDeviceGetPowerUsage)* power = nullptr;
  decltype(nvmlDeviceGetTotalEccErrors)* memory_errors = nullptr;
};

Nvml::Nvml(const char* file) : library_(std::make_unique<Library>(file)) {
  if (!library_->is_known(library_->start(), "GPU: nvmlInit"))
    throw Unavailable("GPU: this process may not ask NVML");
}

Nvml::~Nvml() = default;

GpuUse Nvml::use_of(const std::string& bus_id) const {
  const std::string what = "GPU at " + bus_id;
  nvmlDevice_t device = nullptr;
  if (!library_->is_known(library_->device_at(bus_id.c_str(), &device), what))
    throw Unavailable(what + ": this process may not ask NVML about it");
  GpuUse use;
  nvmlUtilization_t utilization{};
  if (library_->is_known(library_->utilization(device, &utilization), what))
    use.utilization = utilization.gpu / 100.0;
  nvmlMemory_t memory{};
  if (library_->is_known(library_->memory(device, &memory), what)) {
    use.memory_used = memory.used;
    use.memory = memory.total;
  }
  unsigned milliwatts = 0;
  if (library_->is_known(library_->power(device, &milliwatts), what))
    use.watts = milliwatts / 1000.0;
  unsigned long long errors = 0;
  if (library_->is_known(library_->memory_errors(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                                                 NVML_VOLATILE_ECC, &errors),
                         what))
    use.memory_errors = errors;
  return use;
}

}  // namespace muster::compute::cuda
