#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "trainer/group/identity.h"
#include "trainer/group/peer_registry.h"
#include "trainer/ps/serving/shard_host.h"

namespace muster::ps {

// A ps's gRPC server. It accepts members' streams for the hosts' data path, streams of other ps
// whose shards have their second copy here, and rank 0's control calls. It opens one shard after
// the other on one thread, writes on another thread, and takes snapshots at once.
class Server {
 public:
  // Throws Unavailable naming the address if it cannot be bound. `hosts`, one for each shard that
  // may be here, must outlive the server. `greeting` is the time limit for a stream's first
  // message.
  Server(const std::string& address, const group::Identity& identity,
         const std::vector<ShardHost*>& hosts,
         std::chrono::milliseconds greeting = group::PeerRegistry::kGreeting);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::ps
