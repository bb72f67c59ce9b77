#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/threads/mutex.h"
#include "trainer/ps/serving/shard_host.h"

namespace muster::ps {

class FollowStream;

// The streams by which other ps keep second copies of their shards on this ps.
class FollowStreams {
 public:
  using Welcome = std::function<void(const std::string& peer)>;

  // `hosts` has the hosts of the shards that may be on this ps; they must outlive this object.
  // `welcome` is called, with gRPC's name of the peer, for each peer that has shown that it is of
  // the job. `plaintext`: the server has no TLS.
  FollowStreams(std::vector<ShardHost*> hosts, Welcome welcome, bool plaintext)
      : hosts_(std::move(hosts)), welcome_(std::move(welcome)), plaintext_(plaintext) {
    const MutexLock lock(mutex_);  // ThreadSanitizer does not see what gRPC orders
  }
  ~FollowStreams();

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* open(
      grpc::CallbackServerContext* context);
  // Ends all streams.
  void close();
  // Ends the streams that were opened before `opened_before` and have sent no greeting.
  void close_mute(std::chrono::steady_clock::time_point opened_before);

 private:
  friend class FollowStream;

  const std::vector<ShardHost*> hosts_;
  const Welcome welcome_;
  const bool plaintext_;
  Mutex mutex_;
  ConditionVariable empty_;
  std::set<FollowStream*> streams_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::ps
