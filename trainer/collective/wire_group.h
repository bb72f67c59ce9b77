#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "trainer/collective/connections.h"
#include "trainer/collective/group_shape.h"
#include "trainer/collective/session.h"
#include "trainer/collective/wire_floats.h"
#include "trainer/compute/aligned.h"
#include "trainer/compute/loss_sums.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::collective {

// Members that reach each other by TCP. A buffer's sum is formed in ranges (buckets) from its
// beginning on: of each, every member adds up a part, in the replicas' tree, and gives it to all
// others; so what leaves a member is about twice the buffer, however many there are, and all have
// the same bits. Where the shape's sums are rounded that takes half as many bytes. While the caller
// computes, a thread of our own moves what is complete of a large buffer; and while it is long
// away, what the others send.
//
// One caller. When a peer is gone, or the watch says that it is over, calls throw Broken, and the
// group is good for nothing any more.
class WireGroup {
 public:
  using Broken = Connections::Broken;

  static constexpr size_t kBucket = 1 << 18;  // floats: 1 MiB

  // We are `member` of the shape's; `host`, an address or a name, is where we listen. `floats`: of
  // the buffer; `bucket`: of a bucket, at most. Throws Unavailable where nothing can be listened
  // at.
  WireGroup(const GroupShape& shape, int member, size_t floats, const std::string& host,
            size_t bucket = kBucket);
  WireGroup(const WireGroup&) = delete;
  WireGroup& operator=(const WireGroup&) = delete;

  // How the others reach us.
  const std::string& endpoint() const { return connections_.endpoint(); }
  // Connects to all of them, by their endpoints. Throws Invalid for what is none, else Broken.
  void connect(const std::vector<std::string>& endpoints, const Session::Watch& watch);

  // The member's own nodes' sums, to be written before all_reduce().
  std::span<float> own(size_t node) { return own_[node].all(); }
  // Floats [0, end) of them are what all_reduce() will find. From any thread.
  void complete(size_t end);
  std::span<const float> sum() const { return sum_.all(); }
  // sum() becomes that of all; returns what all replicas' rows came to. Throws Broken also where a
  // member is at another step.
  compute::LossSums all_reduce(uint64_t step, const Contribution& contribution,
                               const Session::Watch& watch);
  // Of the last call: what the member said of its time, and the first member's note.
  double seconds(int member) const;
  // Bytes that have come or gone; for the watch of a call.
  uint64_t moved() const { return connections_.moved(); }
  Note note() const;
  // What `source` has in the buffers goes to the members of `targets`. All call it once, with
  // buffers of the same sizes, before any other exchange.
  void broadcast(int source, const std::vector<bool>& targets,
                 std::span<const std::span<float>> buffers, const Session::Watch& watch);

 private:
  struct Header {
    uint64_t step;
    double seconds;
    Note note;
    // ReplicaSums of the sender's replicas follow.
  };
  struct Peer {
    std::vector<std::byte> header;
    std::vector<WireFloats> nodes;  // our part of each of its nodes' sums
    size_t headers = 0, nodes_received = 0, sums_received = 0, states = 0;  // frames of this call
  };

  void plan_buckets(size_t floats, size_t most);
  compute::Range part(size_t bucket, int member) const;
  compute::Range own_part(size_t bucket) const;
  std::span<const iovec> destination(int peer, Connections::Frame frame) MUSTER_REQUIRES(driving_);
  void received(int peer, Connections::Frame frame) MUSTER_REQUIRES(driving_);
  void send_to_all(Connections::Frame frame, std::span<const iovec> parts);
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

  Mutex driving_;  // whoever moves frames drives: ahead_ or the caller
  const GroupShape shape_;
  const int member_;
  std::vector<compute::Range> buckets_;
  std::vector<size_t> own_at_;  // where our part of each bucket lies in what we receive
  size_t own_size_ = 0;
  std::vector<WireFloats> own_;
  WireFloats sum_;
  compute::TreeSum tree_;
  std::vector<const float*> nodes_ MUSTER_GUARDED_BY(driving_);  // of a bucket's part
  std::vector<std::byte> header_;
  std::vector<Peer> peers_ MUSTER_GUARDED_BY(driving_);  // by member
  std::vector<Header> headers_;  // of the last step: the next one's may come at any time
  std::vector<iovec> parts_ MUSTER_GUARDED_BY(driving_);      // of a frame that is received, or
  std::vector<iovec> own_parts_ MUSTER_GUARDED_BY(driving_);  // sent
  std::span<const std::span<float>> state_ MUSTER_GUARDED_BY(driving_);  // that is being received
  // These five are about the call to come or that is under way.
  std::atomic<size_t> complete_{0};                         // floats of our nodes' sums
  size_t contributed_ MUSTER_GUARDED_BY(driving_) = 0;      // buckets
  size_t added_ MUSTER_GUARDED_BY(driving_) = 0;            // buckets
  bool read_ MUSTER_GUARDED_BY(driving_) = false;           // headers_ are its
  std::exception_ptr failure_ MUSTER_GUARDED_BY(driving_);  // that ahead_ met
  std::atomic<bool> ahead_drives_{false}, caller_waits_{false};
  bool stepping_ MUSTER_GUARDED_BY(driving_) = false;  // frames of steps are what may come
  Connections connections_;
  std::jthread ahead_;
};

}  // namespace muster::collective
