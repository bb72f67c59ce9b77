#pragma once

#include <cstdint>
#include <string>

namespace muster {

// Returns 64 bits of the system's randomness: for names and nonces, not for training.
uint64_t random_number();

// Returns such a number as 16 hexadecimal digits.
std::string random_digits();

}  // namespace muster
