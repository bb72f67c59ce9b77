#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/threads/mutex.h"
#include "trainer/collective/connections.h"
#include "trainer/collective/group_shape.h"
#include "trainer/collective/session.h"
#include "trainer/collective/wire_floats.h"
#include "trainer/compute/aligned.h"
#include "trainer/compute/loss_sums.h"
#include "trainer/compute/parameter_layout.h"
#include "trainer/group/identity.h"

namespace muster::collective {

// The group of members that are connected by TCP. A buffer is summed in ranges (buckets), from its
// beginning on. Every member adds up one part of each bucket, in the order of the replicas' tree,
// and sends it to all others. So each member sends about twice the size of the buffer, with any
// number of members, and all have the same bits; if the shape's sums are rounded, it sends half as
// many bytes. While the caller computes, a thread of this class sends the complete part of a large
// buffer; if the caller is away for long, the thread also receives data from the others.
//
// For one calling thread. When a peer is gone, or the watch ends the call, calls throw Broken, and
// the group cannot be used any more.
class WireGroup {
 public:
  using Broken = Connections::Broken;

  static constexpr size_t kBucket = 1 << 18;  // floats: 1 MiB

  // This process is member `member` of the shape, and listens on `host`, an address or a name, at
  // one of `ports` for members with the same identity. `floats` is the size of the buffer, `bucket`
  // the largest size of a bucket. Throws Unavailable if it cannot listen.
  WireGroup(const GroupShape& shape, int member, size_t floats, const std::string& host,
            const group::Identity& identity, const group::PortRange& ports = {},
            size_t bucket = kBucket);
  WireGroup(const WireGroup&) = delete;
  WireGroup& operator=(const WireGroup&) = delete;

  // The endpoint by which the others connect to this member.
  const std::string& endpoint() const { return connections_.endpoint(); }
  // Connects to all members by their endpoints. Throws Broken, also for a malformed endpoint.
  void connect(const std::vector<std::string>& endpoints, const Session::Watch& watch);

  // The sums of the member's own nodes; write them before all_reduce().
  std::span<float> own(size_t node) { return own_[node].all(); }
  // Notes that floats [0, end) of each own() are final. Thread-safe.
  void complete(size_t end);
  std::span<const float> sum() const { return sum_.all(); }
  // Forms sum() over all members; returns the loss sums of all replicas' rows. Throws Broken also
  // if a member is at another step.
  compute::LossSums all_reduce(uint64_t step, const Contribution& contribution,
                               const Session::Watch& watch);
  // Returns the time that the member reported in the last call. note() returns the first member's
  // note in the last call.
  ComputingTime time(int member) const;
  // Throws Broken if a member has left, or has sent something impossible.
  void require_intact();
  // The number of bytes sent and received; for the watch of a call.
  uint64_t moved() const { return connections_.moved(); }
  // The number of bytes sent and received until the end of the last all_reduce().
  uint64_t moved_in_steps() const { return moved_in_steps_; }
  Note note() const;
  bool compare() const { return headers_.front().compare != 0; }  // the first member's wish
  // Sends `digest` to all members, and returns the digests of all members, by member. All members
  // call it between the same steps. If the digests differ, it returns only after every member has
  // all of them, or one has left.
  std::vector<uint32_t> exchange(uint32_t digest, const Session::Watch& watch);
  // Copies the content of the buffers from `source` to the members of `targets`. All members call
  // it once, with buffers of the same sizes, before any other exchange.
  void broadcast(int source, const std::vector<bool>& targets,
                 std::span<const std::span<float>> buffers, const Session::Watch& watch);

 private:
  // A member may be in the next step already, and never further.
  static constexpr size_t kAhead = 2;

  struct Header {
    uint64_t step;
    ComputingTime time;
    Note note;
    uint32_t compare;
    // ReplicaSums of the sender's replicas follow.
  };
  struct Peer {
    std::array<std::vector<std::byte>, kAhead> step_headers;  // headers of two steps, in turns
    std::vector<WireFloats> nodes;  // our part of the sums of each of its nodes
    uint32_t digest = 0;
    // The frames of this call.
    size_t headers = 0, nodes_received = 0, sums_received = 0, states = 0, digests = 0;
  };

  void plan_buckets(size_t floats, size_t most);
  compute::Range part(size_t bucket, int member) const;
  compute::Range own_part(size_t bucket) const;
  std::span<const iovec> destination(int peer, Connections::Frame frame) MUSTER_REQUIRES(driving_);
  void received(int peer, Connections::Frame frame) MUSTER_REQUIRES(driving_);
  bool is_next(Connections::Frame frame, size_t received) const;
  void send_header(uint64_t step, const Contribution& contribution) MUSTER_REQUIRES(driving_);
  compute::LossSums read_headers(uint64_t step) MUSTER_REQUIRES(driving_);
  size_t complete_buckets() const;
  void contribute(size_t bucket) MUSTER_REQUIRES(driving_);
  bool is_heard() const MUSTER_REQUIRES(driving_);
  bool can_add_up() const MUSTER_REQUIRES(driving_);
  void add_up(size_t bucket) MUSTER_REQUIRES(driving_);
  void advance() MUSTER_REQUIRES(driving_);
  void run_ahead(const std::stop_token& stop);
  template <class Call>
  auto drive(const Call& call);
  void wait(const Session::Watch& watch, size_t Peer::*count, size_t expected)
      MUSTER_REQUIRES(driving_);

  Mutex driving_;  // held by the thread that moves frames: ahead_ or the caller
  const GroupShape shape_;
  const int member_;
  std::vector<int> others_;  // all members but this one
  std::vector<compute::Range> buckets_;
  std::vector<size_t> own_at_;  // place of our part of each bucket in the received data
  size_t own_size_ = 0;
  std::vector<WireFloats> own_;
  WireFloats sum_;
  compute::TreeSum tree_;
  std::vector<const float*> nodes_ MUSTER_GUARDED_BY(driving_);  // nodes of a bucket's part
  std::vector<Peer> peers_ MUSTER_GUARDED_BY(driving_);          // by member
  std::vector<Header> headers_;                                  // headers of the last step
  std::vector<iovec> parts_ MUSTER_GUARDED_BY(driving_);         // parts of a received frame
  std::vector<iovec> own_parts_ MUSTER_GUARDED_BY(driving_);     // parts of a sent frame
  std::span<const std::span<float>> state_ MUSTER_GUARDED_BY(driving_);  // the state being received
  int source_ MUSTER_GUARDED_BY(driving_) = -1;                          // from this member
  // The state of the next call or the one under way. The thread that moves frames, ahead_ or the
  // caller, holds driving_.
  std::atomic<size_t> complete_{0};                     // complete floats of our nodes' sums
  size_t contributed_ MUSTER_GUARDED_BY(driving_) = 0;  // number of buckets
  size_t added_ MUSTER_GUARDED_BY(driving_) = 0;        // number of buckets
  bool read_ MUSTER_GUARDED_BY(driving_) = false;       // whether headers_ are those of this call
  size_t turn_ MUSTER_GUARDED_BY(driving_) = 0;         // this call's place in step_headers
  std::exception_ptr failure_ MUSTER_GUARDED_BY(driving_);  // thrown in ahead_
  std::atomic<bool> ahead_drives_{false}, caller_waits_{false};
  uint64_t moved_in_steps_ = 0;                        // read and written by the caller only
  bool stepping_ MUSTER_GUARDED_BY(driving_) = false;  // only frames of steps may come now
  Connections connections_;
  std::jthread ahead_;
};

}  // namespace muster::collective
