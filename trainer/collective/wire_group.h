#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/error.h"
#include "trainer/collective/group_shape.h"
#include "trainer/collective/session.h"
#include "trainer/compute/aligned.h"
#include "trainer/compute/loss_sums.h"
#include "trainer/compute/parameter_layout.h"

namespace gloo::transport {
class Buffer;
class Context;
class Device;
class Pair;
}  // namespace gloo::transport

namespace muster::collective {

// Members that reach each other by TCP: each has a connection to each (Gloo's). A buffer's sum is
// formed in ranges (buckets) from its beginning on: of each, every member adds up a part, in the
// replicas' tree, and gives it to all others; so what leaves a member is about twice the buffer,
// however many there are, and all have the same bits.
//
// One caller. When a peer is gone, or the watch says that it is over, calls throw Broken, and the
// group is good for nothing any more. Precondition: the process ignores SIGPIPE.
class WireGroup {
 public:
  class Broken : public Unavailable {
   public:
    using Unavailable::Unavailable;
  };

  // We are `member` of the shape's; `host`, an address or a name, is where we listen. `floats`: of
  // the buffer. Throws Unavailable where nothing can be listened at.
  WireGroup(const GroupShape& shape, int member, size_t floats, const std::string& host);
  ~WireGroup();
  WireGroup(const WireGroup&) = delete;
  WireGroup& operator=(const WireGroup&) = delete;

  // How the others reach us.
  const std::string& endpoint() const { return endpoint_; }
  // Connects to all of them, by their endpoints. Throws Invalid for what is none, else Broken.
  void connect(const std::vector<std::string>& endpoints, const Session::Watch& watch);

  // The member's own nodes' sums, to be written before all_reduce().
  std::span<float> own(size_t node) { return own_[node]; }
  std::span<const float> sum() const { return sum_; }
  // sum() becomes that of all; `sums`, of each replica of ours, become those of all in their order.
  // Throws Broken also where a member is at another step.
  compute::LossSums all_reduce(uint64_t step, std::span<const compute::LossSums> sums,
                               const Session::Watch& watch);
  // What `source` has in the buffers goes to the members of `targets`. All call it with buffers of
  // the same sizes.
  void broadcast(int source, const std::vector<bool>& targets,
                 std::span<const std::span<float>> buffers, const Session::Watch& watch);

 private:
  struct Header;
  struct Peer;
  class Watching;

  void plan_buckets(size_t floats);
  compute::Range part(size_t bucket, int member) const;
  void send_headers(uint64_t step, std::span<const compute::LossSums> sums);
  compute::LossSums read_headers(uint64_t step);
  void add_up(size_t bucket);
  void watch_over();
  void close();

  const GroupShape shape_;
  const int member_;
  std::vector<compute::Range> buckets_;
  std::vector<size_t> own_at_;  // where our part of each bucket lies in what we receive
  size_t own_size_ = 0;
  std::vector<compute::Floats> own_;
  compute::Floats sum_;
  compute::TreeSum tree_;
  std::vector<const float*> nodes_;  // of a bucket's part
  std::vector<std::byte> header_;
  size_t turn_ = 0;  // of two, by steps: whose header is which
  std::string endpoint_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by member; none for ourselves

  std::mutex mutex_;
  std::condition_variable changed_;
  const Session::Watch* watch_ = nullptr;
  bool closed_ = false;
  bool ending_ = false;
  std::thread watcher_;
};

}  // namespace muster::collective
