#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/compute/aligned.h"

namespace muster::collective {

// Members that each hold the whole state compare their states by digests; otherwise a flipped bit
// in the memory of one of them would stay unnoticed. Returns the CRC-32C of a state: of its
// buffers, one after the other.
uint32_t digest_of(std::span<const compute::Floats> state);
// Returns the CRC-32C continued by one buffer; `before` is the CRC-32C of all buffers before this
// one, or 0.
uint32_t digest_of(std::span<const float> buffer, uint32_t before);

// Returns the members whose state differs from the state of the majority: no member if all states
// are equal; all members if no state has a majority. `digests` are by member.
std::vector<int> odd_members(std::span<const uint32_t> digests);

}  // namespace muster::collective
