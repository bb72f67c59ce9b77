// A fake of NVML, for machines without a GPU. It has three GPUs: the second tells less, and the
// third is lost.
#include <nvml.h>

#include <cstring>

namespace {

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

}  // extern "C"
