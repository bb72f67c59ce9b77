#include "trainer/compute/cuda/runtime/nvml.h"

#include <nvml.h>

#include <map>

#include "common/error.h"
#include "common/system/shared_library.h"
#include "common/threads/mutex.h"

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
    file.find(temperature, "nvmlDeviceGetTemperature");
    file.find(clock, "nvmlDeviceGetClockInfo");
    file.find(new_events, "nvmlEventSetCreate");
    file.find(free_events, "nvmlEventSetFree");
    file.find(want_events, "nvmlDeviceRegisterEvents");
    file.find(next_event, "nvmlEventSetWait_v2");
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
  // nvml.h of CUDA 13 calls this function deprecated, but the one in its place is missing in older
  // drivers.
  nvmlReturn_t (*temperature)(nvmlDevice_t, nvmlTemperatureSensors_t, unsigned*) = nullptr;
  decltype(nvmlDeviceGetClockInfo)* clock = nullptr;
  decltype(nvmlEventSetCreate)* new_events = nullptr;
  decltype(nvmlEventSetFree)* free_events = nullptr;
  decltype(nvmlDeviceRegisterEvents)* want_events = nullptr;
  decltype(nvmlEventSetWait_v2)* next_event = nullptr;
};

// Counts the errors that the driver reports of each GPU, by their number (Xid).
class Nvml::Errors {
 public:
  explicit Errors(const Library& library) : library_(library) {}
  ~Errors() {
    for (const auto& [bus_id, gpu] : gpus_)
      if (gpu.known) library_.free_events(gpu.events);
  }
  Errors(const Errors&) = delete;
  Errors& operator=(const Errors&) = delete;

  // Sets the errors in `use`, if this GPU reports them.
  void look(const std::string& bus_id, nvmlDevice_t device, const std::string& what, GpuUse& use) {
    const MutexLock lock(mutex_);
    const auto [at, is_new] = gpus_.try_emplace(bus_id);
    Gpu& gpu = at->second;
    if (is_new) begin(gpu, device);
    if (!gpu.known) return;
    nvmlEventData_t event{};
    for (;;) {
      const nvmlReturn_t result = library_.next_event(gpu.events, &event, /*timeoutms=*/0);
      if (result == NVML_ERROR_TIMEOUT || !library_.is_known(result, what)) break;
      ++gpu.count;
      gpu.last = event.eventData;
    }
    use.xid_errors = gpu.count;
    use.last_xid = gpu.last;
  }

 private:
  struct Gpu {
    bool known = false;  // whether the GPU reports errors
    nvmlEventSet_t events = nullptr;
    uint64_t count = 0;
    uint64_t last = 0;
  };

  // A failure means that errors are not known; other numbers of the GPU may still be.
  void begin(Gpu& gpu, nvmlDevice_t device) const {
    if (library_.new_events(&gpu.events) != NVML_SUCCESS) return;
    gpu.known =
        library_.want_events(device, nvmlEventTypeXidCriticalError, gpu.events) == NVML_SUCCESS;
    if (!gpu.known) library_.free_events(gpu.events);
  }

  const Library& library_;
  Mutex mutex_;
  std::map<std::string, Gpu> gpus_ MUSTER_GUARDED_BY(mutex_);
};

Nvml::Nvml(const char* file)
    : library_(std::make_unique<Library>(file)), errors_(std::make_unique<Errors>(*library_)) {
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
  unsigned celsius = 0;
  if (library_->is_known(library_->temperature(device, NVML_TEMPERATURE_GPU, &celsius), what))
    use.celsius = celsius;
  unsigned megahertz = 0;
  if (library_->is_known(library_->clock(device, NVML_CLOCK_SM, &megahertz), what))
    use.clock = 1e6 * megahertz;
  errors_->look(bus_id, device, what, use);
  return use;
}

}  // namespace muster::compute::cuda
