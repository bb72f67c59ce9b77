#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "trainer/compute/loss_sums.h"

namespace muster::collective {

// A message from rank 0 (the first member) to the others, sent with a step: bytes that only the
// callers understand. Plain memory.
struct Note {
  static constexpr size_t kMost = 252;

  uint32_t size = 0;
  std::array<char, kMost> bytes{};

  // Throws Invalid if `text` has more than kMost bytes.
  static Note from(const std::string& text);
  std::string text() const;
  bool operator==(const Note&) const = default;
};

// The time that a member took to compute its gradients for a step. Plain memory.
struct ComputingTime {
  double seconds = 0;
  double input = 0;  // seconds of it that the member waited for batches of its data
};

// A member's input to a step besides its gradients.
struct Contribution {
  explicit Contribution(std::span<const compute::LossSums> its_sums) : sums(its_sums) {}

  std::span<const compute::LossSums> sums;  // sums of each of its logical replicas
  ComputingTime time;
  // Only the first member's `note` and `compare` are used.
  Note note;
  bool compare = false;  // all members compare their states after the step
};

}  // namespace muster::collective
