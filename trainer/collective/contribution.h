#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "trainer/compute/loss_sums.h"

namespace muster::collective {

// What rank 0 (the first member) lets the others know with a step: bytes that only the callers
// understand. Plain memory.
struct Note {
  static constexpr size_t kMost = 252;

  uint32_t size = 0;
  std::array<char, kMost> bytes{};

  // Throws Invalid for more than kMost.
  static Note from(const std::string& text);
  std::string text() const;
  bool operator==(const Note&) const = default;
};

// What a member brings to a step besides gradients.
struct Contribution {
  explicit Contribution(std::span<const compute::LossSums> its_sums) : sums(its_sums) {}

  std::span<const compute::LossSums> sums;  // of each of its logical replicas
  double seconds = 0;                       // that it computed
  Note note;                                // of the first member
};

}  // namespace muster::collective
