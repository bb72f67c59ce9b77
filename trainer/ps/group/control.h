#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/ps/group/formation.h"

namespace muster::ps {

// Rank 0's control of all shards: the same call to each at once, where it is served, each with a
// deadline.
// Throws Unavailable or Invalid as the shard did, naming it; WriteError where it could not write.
class Control {
 public:
  // `addresses`: of each ps, which serves the shard of its number until route() says otherwise.
  // `job_uid` goes with every call: a shard answers no other job's.
  Control(const std::vector<std::string>& addresses, std::string job_uid);
  ~Control();

  // Ends every call under way, and those to come, with Unavailable: we are leaving. Thread-safe.
  void cancel();

  // Where each ps is from here on.
  void locate(const std::vector<std::string>& addresses);
  // Which ps serves each shard from here on.
  void route(std::vector<int> serving);

  // A reply for each opening.
  std::vector<OpenReply> open(const std::vector<Formation::Opening>& openings,
                              std::chrono::milliseconds deadline);
  // `shard_0_first`: the others once it has answered (asynchronous shards: SnapshotRequest says
  // why).
  std::vector<SnapshotReply> snapshot(uint64_t generation, bool shard_0_first,
                                      std::chrono::milliseconds deadline);
  // `steps`: of each shard's snapshot.
  std::vector<WriteReply> write(const WriteRequest& request, const std::vector<uint64_t>& steps,
                                std::chrono::milliseconds deadline);
  // Those snapshots are written as fast as may be from here on. Thread-safe.
  void hurry(uint64_t generation, const std::vector<uint64_t>& steps,
             std::chrono::milliseconds deadline);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::ps
