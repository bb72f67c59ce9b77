// A fake of NVML, for machines without a GPU. It has three GPUs: the second tells less, and the
// third is lost. The driver reports two errors of the first.
#include <nvml.h>

#include <cstring>
#include <deque>

namespace {

using Events = std::deque<unsigned long long>;  // Xids

int numbers[] = {0, 1, 2};
const char* const kPlaces[] = {"0000:3b:00.0", "0000:5e:00.0", "0000:86:00.0"};

bool is_first(nvmlDevice_t device) {
  return reinterpret_cast<int*>(device) == &numbers[0];
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2() {
  return NVML_SUCCESS;
}

const char* nvmlErrorString(nvmlReturn_t result) {
  return result == NVML_ERROR_GPU_IS_LOST ? "GPU is lost" : "Not Found";
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* device) {
  for (int i = 0; i < 3; ++i) {
    if (std::strcmp(bus_id, kPlaces[i]) != 0) continue;
    *device = reinterpret_cast<nvmlDevice_t>(&numbers[i]);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* rates) {
  if (!is_first(device)) return NVML_ERROR_NOT_SUPPORTED;
  *rates = {93, 40};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  if (reinterpret_cast<int*>(device) == &numbers[2]) return NVML_ERROR_GPU_IS_LOST;
  memory->total = 80'000;
  memory->used = is_first(device) ? 2'000 : 3'000;
  memory->free = memory->total - memory->used;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* milliwatts) {
  if (!is_first(device)) return NVML_ERROR_NOT_SUPPORTED;
  *milliwatts = 412'500;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t kind,
                                         nvmlEccCounterType_t counter, unsigned long long* errors) {
  if (!is_first(device)) return NVML_ERROR_NOT_SUPPORTED;
  if (kind != NVML_MEMORY_ERROR_TYPE_UNCORRECTED || counter != NVML_VOLATILE_ECC)
    return NVML_ERROR_INVALID_ARGUMENT;
  *errors = 1;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned* celsius) {
  if (!is_first(device)) return NVML_ERROR_NOT_SUPPORTED;
  if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  *celsius = 61;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t clock,
                                    unsigned* megahertz) {
  if (!is_first(device)) return NVML_ERROR_NOT_SUPPORTED;
  if (clock != NVML_CLOCK_SM) return NVML_ERROR_INVALID_ARGUMENT;
  *megahertz = 1'980;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set) {
  *set = reinterpret_cast<nvmlEventSet_t>(new Events);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  delete reinterpret_cast<Events*>(set);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t set) {
  if (!is_first(device)) return NVML_ERROR_NOT_SUPPORTED;
  if (types != nvmlEventTypeXidCriticalError) return NVML_ERROR_INVALID_ARGUMENT;
  *reinterpret_cast<Events*>(set) = {31, 79};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* data, unsigned timeoutms) {
  Events& events = *reinterpret_cast<Events*>(set);
  if (timeoutms != 0) return NVML_ERROR_INVALID_ARGUMENT;
  if (events.empty()) return NVML_ERROR_TIMEOUT;
  data->eventType = nvmlEventTypeXidCriticalError;
  data->eventData = events.front();
  events.pop_front();
  return NVML_SUCCESS;
}

}  // extern "C"
