#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "common/descriptor.h"

namespace muster::collective {

// The first bytes of a connection between two members, from the one that has made it.
struct Greeting {
  uint64_t word;  // of the endpoint that it connects to
  uint32_t member;
  uint32_t members;
};

// Takes in connections until they have said whose they are. Whoever says nothing (it may be a port
// scanner) delays nobody; it is dropped after a while, or for a newer one where they are many.
class Admission {
 public:
  struct Admitted {
    Descriptor socket;  // non-blocking
    Greeting greeting;
  };

  // `listener` is non-blocking.
  explicit Admission(Descriptor listener) : listener_(std::move(listener)) {}

  // Who has said it, as soon as somebody has: within `most`.
  std::optional<Admitted> next(std::chrono::milliseconds most);

 private:
  using Clock = std::chrono::steady_clock;
  struct Silent {
    Descriptor socket;
    Clock::time_point until;
  };

  void accept_some();
  bool await(std::chrono::milliseconds most);

  Descriptor listener_;
  std::deque<Silent> silent_;  // the oldest first
};

}  // namespace muster::collective
