#include "common/random.h"

#include <fmt/format.h>

#include <random>

namespace muster {

uint64_t random_number() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

std::string random_digits() {
  return fmt::format("{:016x}", random_number());
}

}  // namespace muster
