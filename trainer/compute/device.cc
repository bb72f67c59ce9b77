#include "trainer/compute/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "common/error.h"

namespace muster::compute {

namespace {

// The kinds that this build has engines for. `auto` takes the first.
constexpr std::array kKinds{DeviceKind::cpu};

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
    std::vector<std::string> names{"auto"};
    for (const DeviceKind kind : kKinds) names.emplace_back(name_of(kind));
    return names;
  }();
  return choices;
}

std::vector<Device> choose_devices(const std::string& wanted, int count) {
  const auto& choices = device_choices();
  if (std::ranges::find(choices, wanted) == choices.end())
    throw Invalid(
        fmt::format("device: expected {}, found \"{}\", which is not available in this build",
                    fmt::join(choices, " or "), wanted));
  DeviceKind chosen = kKinds.front();
  for (const DeviceKind kind : kKinds)
    if (name_of(kind) == wanted) chosen = kind;
  std::vector<Device> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) devices.push_back({chosen, ordinal});
  return devices;
}

}  // namespace muster::compute
