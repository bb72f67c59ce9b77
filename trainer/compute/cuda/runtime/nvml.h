#pragma once

#include <memory>
#include <string>

#include "trainer/compute/cuda/gpu_use.h"

namespace muster::compute::cuda {

// NVML, the library of NVIDIA's driver that reports how GPUs are used.
class Nvml {
 public:
  // Opens the library, which stays open until the process ends. Throws Unavailable if there is none
  // or it has no driver.
  explicit Nvml(const char* file = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // `bus_id` is the GPU's place on the PCI bus, for example "0000:3b:00.0". Errors that the driver
  // reports (Xid) are counted from the first call for a GPU. Throws Unavailable if there is no such
  // GPU or it does not answer. Thread-safe.
  GpuUse use_of(const std::string& bus_id) const;

 private:
  struct Library;
  class Errors;
  std::unique_ptr<const Library> library_;
  const std::unique_ptr<Errors> errors_;  // ends before the library
};

}  // namespace muster::compute::cuda
