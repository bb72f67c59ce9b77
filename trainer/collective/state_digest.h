#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/compute/aligned.h"

namespace muster::collective {

// Members that each hold the whole state compare it by these: a bit that flips in the memory of one
// of them would otherwise stay unseen.

// Returns the CRC-32C of a state: of its buffers, one after the other.
uint32_t digest_of(std::span<const compute::Floats> state);
// Returns the CRC-32C of one buffer of it; `before` is that of all buffers before this one, or 0.
uint32_t digest_of(std::span<const float> buffer, uint32_t before);

// Returns the members whose state is not the one that more than half of them hold: none if all
// hold the same, all if no state is held by more than half. `digests` are by member.
std::vector<int> odd_members(std::span<const uint32_t> digests);

}  // namespace muster::collective
