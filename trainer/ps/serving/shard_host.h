#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/threads/mutex.h"
#include "proto/muster/parameter_server.pb.h"
#include "trainer/checkpoint/store/checkpoint.h"
#include "trainer/ps/shard/gpu_update.h"
#include "trainer/ps/shard/replicated_shard.h"
#include "trainer/ps/transport/member_mailbox.h"
#include "trainer/ps/transport/wire.h"
#include "trainer/spec/training_spec.h"

namespace muster::ps {

// The settings that a ps has from its start, before it holds any state.
struct HostIdentity {
  std::string job_uid;
  std::string version;
  std::string training_fingerprint;
  std::filesystem::path storage;
  int shard = 0;
  int shards = 1;
  uint64_t incarnation = 0;  // incarnation in this process's Hello
};

// A ps's copy of a shard, with opening from a checkpoint or the initializers, snapshots, and files.
// Thread-safe. The transports that carry the messages call it.
class ShardHost {
 public:
  // Called, under the lock, with the answers that have become due.
  using Deliver = std::function<void(const Shard&, const Shard::Answers&)>;

  // `gpu` keeps and updates the shard; null: the CPU does. Members may use what they got from the
  // shard as long as the GPU exists.
  ShardHost(spec::TrainingSpec spec, HostIdentity identity,
            std::shared_ptr<compute::cuda::Gpu> gpu = nullptr);

  void on_answers(Deliver deliver);
  bool is_of(std::string_view job_uid) const { return job_uid == identity_.job_uid; }

  // Throws Invalid with kProtocol for a peer of another job, version, training or layout, and the
  // errors of checkpoint::load.
  ShardState open(const OpenRequest& request);
  // Throws Unavailable if the generation is not the current one, or the shard's GPU has failed.
  SnapshotReply snapshot(const SnapshotRequest& request);
  // Throws WriteError; Invalid (kDiverged) for values that are not finite; Unavailable if the
  // second copy of the shard had another state at that step, or the shard's GPU has failed.
  WriteReply write(const WriteRequest& request);
  // Makes the write under way, or the write of the requested snapshot once it begins, run at full
  // speed.
  void hurry(const HurryRequest& request);

  int shard() const { return identity_.shard; }
  ShardState state() const;
  // Throws the GPU's error, because the shard is lost with the GPU. Throws DeviceError if the
  // second copy has differed repeatedly; otherwise the group would go back for ever. It is not
  // known which of the two machines is faulty.
  void require_faultless() const;
  Shard::Counts counts() const;
  WireType wire() const { return spec_.wire; }
  // The shard's number of floats; nothing before it has been opened.
  std::optional<size_t> size() const;
  // The shard's part of a member's memory; nothing before the shard has been opened.
  std::optional<MemberMailbox::Place> place() const;
  // Returns why a member with this greeting may not push here; "" if it may.
  std::string objection(const ExchangeHello& hello) const;

  // The data path: call the Shard and deliver the answers. push() and pull() return false if no
  // generation was ever opened, or the shard's GPU has failed.
  bool push(uint64_t session, const PushHeader& header, const Shard::Buffers& buffers);
  bool pull(uint64_t session, const PushHeader& header);
  void detach(uint64_t session);

  // Sends a message of StandbyFeed to the second copy of the shard served here.
  using SendToStandby = std::function<void(const StandbyFeed::Message&)>;
  struct Standby {
    uint64_t incarnation = 0;  // 0: none
    uint64_t session = 0;
  };
  void name_standby(uint64_t generation, uint64_t incarnation);
  Standby standby() const;
  // Called when a stream to the standby is open: messages for the standby go to `send`, under the
  // lock, until cut_standby().
  void greet_standby(SendToStandby send);
  bool acknowledged(const Acknowledgement& reply);
  void cut_standby();
  void lose_standby();

  // Takes a message from the feed of the process that serves the shard, on a stream that began with
  // `greeting`. Returns the reply.
  Acknowledgement follow(const ForwardHello& greeting, const Forward& message,
                         std::span<const float> values);
  // Returns the number of floats of the longest message on such a stream.
  size_t most_forwarded() const;

 private:
  std::string the_copies() const;  // names the shard's copies, in words
  // Values from the first opening. They never change, so a reader with a reference needs no lock.
  struct Built {
    std::unique_ptr<compute::Optimizer> optimizer;  // with its layout
    std::string fingerprint;                        // fingerprint of the layout
    compute::Range range;                           // range of the shard
  };
  void require_job(const std::string& uid) const;
  void check(const OpenRequest& request) const MUSTER_REQUIRES(mutex_);
  void build(const OpenRequest& request) MUSTER_REQUIRES(mutex_);
  const Built& built() const;
  Shard::Content first_content(const Built& built, const OpenRequest& request) const;
  void require_device_locked() const MUSTER_REQUIRES(mutex_);
  template <class Work>
  bool with_shard_locked(const Work& work, bool may_refuse = false) MUSTER_REQUIRES(mutex_);
  Shard::Buffers near_locked(uint64_t session, const Shard::Buffers& buffers)
      MUSTER_REQUIRES(mutex_);
  void deliver_locked() MUSTER_REQUIRES(mutex_);
  ReplicatedShard::Copy to_write(const WriteRequest& request);
  void require_same_second_copy(const ReplicatedShard::Copy& copy);
  void feed_standby_locked() MUSTER_REQUIRES(mutex_);

  const spec::TrainingSpec spec_;
  const HostIdentity identity_;
  const std::shared_ptr<compute::cuda::Gpu> gpu_;  // outlives everything in its memory
  std::shared_ptr<GpuFloats> gpu_floats_;          // with a GPU; never changes

  mutable Mutex mutex_;
  ConditionVariable acknowledged_;
  Deliver deliver_ MUSTER_GUARDED_BY(mutex_);
  std::unique_ptr<const Built> built_ MUSTER_GUARDED_BY(mutex_);
  std::optional<ReplicatedShard> hosted_ MUSTER_GUARDED_BY(mutex_);
  std::exception_ptr failure_ MUSTER_GUARDED_BY(mutex_);  // error of the GPU
  // Holds, for each session, a copy on the GPU of gradients that came into the host's memory.
  std::map<uint64_t, compute::cuda::GpuArray<float>> near_ MUSTER_GUARDED_BY(mutex_);
  Shard::Answers answers_ MUSTER_GUARDED_BY(mutex_);
  SendToStandby send_to_standby_ MUSTER_GUARDED_BY(mutex_);
  HurryRequest hurried_ MUSTER_GUARDED_BY(mutex_);  // the last one
  checkpoint::SpeedLimit limit_;                    // thread-safe
};

}  // namespace muster::ps
