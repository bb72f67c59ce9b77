#pragma once

#include <cstdint>
#include <string>

namespace muster {

// Returns 64 random bits from the system, for names and nonces, not for training.
uint64_t random_number();

// Returns random_number() as 16 hexadecimal digits.
std::string random_digits();

}  // namespace muster
