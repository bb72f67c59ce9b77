#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "common/net/connection_limit.h"
#include "common/system/descriptor.h"
#include "trainer/collective/stream.h"

namespace muster::collective {

// The first bytes of a connection between two members, sent by the one that opened it.
struct Greeting {
  uint64_t word;  // the word in the endpoint that it connects to
  uint32_t member;
  uint32_t members;
};

// Accepts connections with an identity and holds each until its greeting has come. A silent
// connection (perhaps a port scanner's) delays no other connection: it is closed after a while, or
// earlier in favour of a newer one if there are many from its address or in all.
class Admission {
 public:
  struct Admitted {
    Stream stream;
    Greeting greeting;
  };

  // `listener` is non-blocking.
  Admission(Descriptor listener, const group::Identity& identity);

  // Returns a connection as soon as its greeting has come; nothing if none comes within `most`.
  std::optional<Admitted> next(std::chrono::milliseconds most);

 private:
  using Clock = std::chrono::steady_clock;
  struct Silent {
    Stream stream;
    Clock::time_point until;
    Greeting greeting{};
    size_t greeted = 0;  // bytes of the greeting that have come
  };

  void accept_some();
  bool await(std::chrono::milliseconds most);
  static bool hear(Silent& one);
  std::deque<Silent>::iterator forget(const std::deque<Silent>::iterator& one);

  Descriptor listener_;
  const group::Identity& identity_;
  std::deque<Silent> silent_;
  ConnectionLimit limit_;  // limit of the silent connections, by descriptor
};

}  // namespace muster::collective
