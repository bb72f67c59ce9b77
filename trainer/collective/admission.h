#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "common/descriptor.h"

namespace muster::collective {

// The first bytes of a connection between two members, sent by the one that opened it.
struct Greeting {
  uint64_t word;  // the word in the endpoint that it connects to
  uint32_t member;
  uint32_t members;
};

// Accepts connections and holds each until its greeting has come. A connection that sends nothing
// (it may be a port scanner's) delays nobody: it is dropped after a while, or earlier, in favour of
// a newer one, when there are many.
class Admission {
 public:
  struct Admitted {
    Descriptor socket;  // non-blocking
    Greeting greeting;
  };

  // `listener` is non-blocking.
  explicit Admission(Descriptor listener) : listener_(std::move(listener)) {}

  // Returns a connection as soon as its greeting has come; nothing if none comes within `most`.
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
