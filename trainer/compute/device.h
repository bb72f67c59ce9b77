#pragma once

#include <string>
#include <vector>

namespace muster::compute {

enum class DeviceKind { cpu, cuda };

// A device that an engine computes on. Several CPU devices of a process share its cores.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int ordinal = 0;  // from 0, among the process's devices of this kind
  bool operator==(const Device&) const = default;
};

const char* name_of(DeviceKind kind);         // "cpu"
std::string to_string(const Device& device);  // "cpu:0"

// Returns the devices that a training may ask for in this build: "auto" (GPUs if there are any,
// else CPUs) and each kind that has an engine.
const std::vector<std::string>& device_choices();

// Returns the first `count` devices of the kind that `wanted` names; for "auto" some may share a
// GPU. Throws Invalid (kBadConfig), which names the field of the training, if `wanted` is no
// device, or if the process has too few devices of that kind. A build without CUDA has no GPUs.
std::vector<Device> choose_devices(const std::string& wanted, int count,
                                   const char* field = "device");

}  // namespace muster::compute
