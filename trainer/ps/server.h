#pragma once

#include <memory>
#include <string>

#include "trainer/ps/shard_host.h"

namespace muster::ps {

// A ps's gRPC server: streams of members onto the host's data path, and rank 0's control calls,
// which run one after the other on a thread of their own.
class Server {
 public:
  // Throws Unavailable naming the address if it cannot be bound. `host` must outlive the server.
  Server(const std::string& address, ShardHost& host);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::ps
