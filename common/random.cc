#include "common/random.h"

#include <random>

namespace muster {

uint64_t random_number() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace muster
