#pragma once

#include <random>
#include <string>
#include <thread>
#include <vector>

namespace muster::chaos {

// A stranger that throws bytes at ports of this machine, of many kinds and from several threads,
// until it goes: noise; HTTP/2 that breaks off, lies about lengths or is mutated; calls of Muster's
// services with messages of another job, as they are and mutated; HTTP/1 beyond all limits;
// connections by the hundred that say nothing; and such as say a byte at a time.
class HostilePeer {
 public:
  HostilePeer(const std::vector<int>& ports, uint64_t seed);
  // Waits until its threads have ended.
  ~HostilePeer() = default;
  HostilePeer(const HostilePeer&) = delete;
  HostilePeer& operator=(const HostilePeer&) = delete;

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace muster::chaos
