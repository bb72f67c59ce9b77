#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/muster/parameter_server.pb.h"
#include "trainer/group/identity.h"
#include "trainer/ps/group/ps_formation.h"

namespace muster::ps {

// Rank 0's control of all shards: sends the same call to all shards at once, each to the ps that
// serves the shard, with a deadline. Throws the shard's Unavailable or Invalid, naming the shard;
// WriteError if the shard could not write.
class Control {
 public:
  // `addresses` has one entry for each ps. A ps serves the shard with its number until route()
  // changes this. Every call carries `job_uid`: a shard answers only calls of its own job.
  Control(const std::vector<std::string>& addresses, const group::Identity& identity,
          std::string job_uid);
  ~Control();

  // Ends every call under way and every later call with Unavailable, because this process is
  // leaving. Thread-safe.
  void cancel();

  // Sets the address of each ps.
  void locate(const std::vector<std::string>& addresses);
  // Sets which ps serves each shard.
  void route(std::vector<int> serving);

  // Returns a reply for each opening.
  std::vector<OpenReply> open(const std::vector<PsFormation::Opening>& openings,
                              std::chrono::milliseconds deadline);
  // With `shard_0_first` the other shards are called only after shard 0 has answered (for
  // asynchronous shards; see SnapshotRequest).
  std::vector<SnapshotReply> snapshot(uint64_t generation, bool shard_0_first,
                                      std::chrono::milliseconds deadline);
  // `steps` has the step of each shard's snapshot.
  std::vector<WriteReply> write(const WriteRequest& request, const std::vector<uint64_t>& steps,
                                std::chrono::milliseconds deadline);
  // Makes the shards write the snapshots of these steps at full speed from here on. Thread-safe.
  void hurry(uint64_t generation, const std::vector<uint64_t>& steps,
             std::chrono::milliseconds deadline);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::ps
