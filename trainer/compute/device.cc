#include "trainer/compute/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/error.h"

namespace muster::compute {

const char* name_of(DeviceKind kind) {
  return kind == DeviceKind::cuda ? "cuda" : "cpu";
}

std::string to_string(const Device& device) {
  return std::string(name_of(device.kind)) + ":" + std::to_string(device.ordinal);
}

const std::vector<std::string>& device_choices() {
  static const std::vector<std::string> choices{"auto", name_of(DeviceKind::cpu)};
  return choices;
}

std::vector<Device> choose_devices(const std::string& wanted, int count) {
  const auto& choices = device_choices();
  if (std::ranges::find(choices, wanted) == choices.end())
    throw Invalid(
        fmt::format("device: expected {}, found \"{}\", which is not available in this build",
                    fmt::join(choices, " or "), wanted));
  std::vector<Device> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) devices.push_back({DeviceKind::cpu, ordinal});
  return devices;
}

}  // namespace muster::compute
