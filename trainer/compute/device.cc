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

std::string describe_gpus(int count) {
  if (!cuda::kInThisBuild)
    return "a build without CUDA (docs/guides/gpu.md says how to build with it)";
  const std::string why = cuda::why_no_gpu();
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return fmt::format("{}{}{} (CUDA_VISIBLE_DEVICES {})", count, why.empty() ? "" : ": ", why,
                     visible == nullptr ? "is not set" : fmt::format("is \"{}\"", visible));
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
  const bool named = wanted == name_of(DeviceKind::cuda);
  if (!named && std::ranges::find(choices, wanted) == choices.end())
    throw Invalid(
        fmt::format("{}: expected {}, found \"{}\"", field, fmt::join(choices, " or "), wanted),
        kBadConfig);
  const int gpus = wanted == name_of(DeviceKind::cpu) ? 0 : cuda::gpu_count();
  if (named && gpus < count)
    throw Invalid(fmt::format("{}: expected {} GPU{} that this process can use, found {}", field,
                              count, count == 1 ? "" : "s", describe_gpus(gpus)),
                  kBadConfig);
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i)
    devices.push_back(gpus > 0 ? Device{DeviceKind::cuda, i % gpus} : Device{DeviceKind::cpu, i});
  return devices;
}

}  // namespace muster::compute
