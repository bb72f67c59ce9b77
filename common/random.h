#pragma once

#include <cstdint>

namespace muster {

// Returns 64 bits of the system's randomness: for names and nonces, not for training.
uint64_t random_number();

}  // namespace muster
