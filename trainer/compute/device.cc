#include "trainer/compute/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "common/error.h"
#include "common/exit_code.h"
#include "trainer/compute/cuda/gpus.h"

namespace muster::compute {
namespace {

std::string describe_visible_devices() {
  const char* value = std::getenv("CUDA_VISIBLE_DEVICES");
  return value == nullptr ? "is not set" : fmt::format("is \"{}\"", value);
}

std::string described(const std::string& why) {
  return why.empty() ? "" : ": " + why;
}

}  // namespace

const char* name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::cuda:
      return "cuda";
  }
  return "";
}

std::string to_string(const Device& device) {
  return std::string(name_of(device.kind)) + ":" + std::to_string(device.ordinal);
}

const std::vector<std::string>& device_choices() {
  static const std::vector<std::string> choices = [] {
    std::vector<std::string> names{"auto", name_of(DeviceKind::cpu)};
    if (cuda::kInThisBuild) names.emplace_back(name_of(DeviceKind::cuda));
    return names;
  }();
  return choices;
}

std::vector<Device> choose_devices(const std::string& wanted, int count, const char* field) {
  const auto& choices = device_choices();
  if (std::ranges::find(choices, wanted) == choices.end())
    throw Invalid(fmt::format("{}: expected {}, found \"{}\", which is not available in this build "
                              "(docs/gpu.md says how to build with CUDA)",
                              field, fmt::join(choices, " or "), wanted),
                  kBadConfig);
  const bool named = wanted == name_of(DeviceKind::cuda);
  const int gpus = wanted == name_of(DeviceKind::cpu) ? 0 : cuda::gpu_count();
  if (named && gpus < count)
    throw Invalid(fmt::format("{}: expected {} GPU{} that this process can use, found {}{} "
                              "(CUDA_VISIBLE_DEVICES {})",
                              field, count, count == 1 ? "" : "s", gpus,
                              described(cuda::why_no_gpu()), describe_visible_devices()),
                  kBadConfig);
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i)
    devices.push_back(gpus > 0 ? Device{DeviceKind::cuda, i % gpus} : Device{DeviceKind::cpu, i});
  return devices;
}

}  // namespace muster::compute
