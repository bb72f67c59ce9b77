#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>

#include "common/system/descriptor.h"
#include "proto/muster/rendezvous.pb.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/collective/group_of_threads.h"
#include "trainer/host/arithmetic.h"

namespace muster::collective {
namespace {

using testing::patient;
using testing::Reference;
using testing::run_members;

constexpr size_t kGreeting = 16;      // bytes by which a member says who it is
constexpr size_t kSmallBucket = 128;  // floats: a part of two members' of its own for each

Descriptor connect_to(uint32_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    socket.reset();
  return socket;
}

// Between two members: passes on what they say. Of one of them, after so many bytes, it either ends
// or flips a bit.
class Cable {
 public:
  enum Side : size_t { dialing, listening };
  enum class Fault { end, flip };

  // To the member with that endpoint.
  Cable(const std::string& endpoint, Side side, size_t bytes, Fault fault)
      : side_(side), fault_(fault), left_(bytes) {
    endpoint_.ParseFromString(endpoint);
    const uint32_t port = endpoint_.port();
    endpoint_.set_port(static_cast<uint32_t>(listener_.port()));
    thread_ = std::jthread([this, port] {
      ends_[dialing] = Descriptor(listener_.accept_one());
      ends_[listening] = connect_to(port);
      while (pass()) {
      }
      for (Descriptor& end : ends_) end.reset();
    });
  }
  std::string endpoint() const { return endpoint_.SerializeAsString(); }

 private:
  bool pass() {
    std::array<pollfd, 2> waiting{{{ends_[0].get(), POLLIN, 0}, {ends_[1].get(), POLLIN, 0}}};
    poll(waiting.data(), waiting.size(), -1);
    for (const size_t from : {0, 1}) {
      if (waiting[from].revents == 0) continue;
      char bytes[4096];
      const bool ends = from == side_ && fault_ == Fault::end;
      const size_t most = ends ? std::min(sizeof bytes, left_) : sizeof bytes;
      const ssize_t size = most > 0 ? recv(ends_[from].get(), bytes, most, 0) : 0;
      if (size <= 0) return false;
      if (from == side_) {
        const size_t passed = std::min(static_cast<size_t>(size), left_);
        if (!ends && !flipped_ && passed < static_cast<size_t>(size)) {
          bytes[passed] = static_cast<char>(bytes[passed] ^ 1 << passed % 8);
          flipped_ = true;
        }
        left_ -= passed;
      }
      if (send(ends_[1 - from].get(), bytes, static_cast<size_t>(size), MSG_NOSIGNAL) != size)
        return false;
    }
    return true;
  }

  const Side side_;
  const Fault fault_;
  size_t left_;
  bool flipped_ = false;
  const Listener listener_;
  WireEndpoint endpoint_;
  std::array<Descriptor, 2> ends_;
  std::jthread thread_;
};

// Steps of a group, and what each comes to.
class Exchange {
 public:
  Exchange(size_t floats, int replicas, int members, size_t steps, bool rounded = false)
      : reference_(compute::Sgd{}, floats, replicas, rounded), shape_(reference_.shape(members)) {
    const Reference::State state = reference_.initial();
    for (uint64_t step = 0; step < steps; ++step) {
      compute::Floats& sum =
          sums_.emplace_back(reference_.gradient(step, {0, replicas}, state.buffers[0]));
      if (rounded)
        host::arithmetic().round_to_bfloat16(static_cast<int64_t>(sum.size()), sum.data(),
                                             sum.data());
      auto& nodes = nodes_.emplace_back(static_cast<size_t>(members));
      for (int member = 0; member < members; ++member)
        for (const compute::Subtree node : shape_.nodes_of(member))
          nodes[static_cast<size_t>(member)].push_back(
              reference_.gradient(step, node, state.buffers[0]));
    }
  }

  const GroupShape& shape() const { return shape_; }
  size_t floats() const { return reference_.floats(); }
  size_t steps() const { return sums_.size(); }

  // A member's part of a step: it writes its sums from the beginning on and says now and then how
  // far it has come, as often as not to the end.
  void make(WireGroup& group, int member, uint64_t step, std::mt19937& random) const {
    const auto& nodes = nodes_[step][static_cast<size_t>(member)];
    for (size_t begin = 0; begin < floats();) {
      const size_t end = std::min(floats(), begin + 1 + random() % (floats() / 2));
      for (size_t i = 0; i < nodes.size(); ++i)
        std::copy(nodes[i].begin() + static_cast<std::ptrdiff_t>(begin),
                  nodes[i].begin() + static_cast<std::ptrdiff_t>(end),
                  group.own(i).begin() + static_cast<std::ptrdiff_t>(begin));
      if (random() % 2 == 0) group.complete(end);
      if (random() % 4 == 0) std::this_thread::yield();
      begin = end;
    }
    std::vector<compute::LossSums> sums;
    const compute::Subtree own = shape_.replicas_of(member);
    for (int replica = own.begin; replica < own.end; ++replica)
      sums.push_back(reference_.sums(step, replica));
    const compute::LossSums all = group.all_reduce(step, Contribution(sums), patient());
    EXPECT_EQ(all.rows, reference_.sums(step).rows);
    EXPECT_EQ(all.loss, reference_.sums(step).loss);
    EXPECT_EQ(std::memcmp(group.sum().data(), sums_[step].data(), floats() * sizeof(float)), 0)
        << "member " << member << ", step " << step;
  }

 private:
  const Reference reference_;
  const GroupShape shape_;
  std::vector<std::vector<std::vector<compute::Floats>>> nodes_;  // by step, member and node
  std::vector<compute::Floats> sums_;                             // by step
};

TEST(WireExchangeTest, ManyStepsAreWholeHoweverEarlyTheirBeginningsAreComplete) {
  for (const int members : {2, 3})
    for (const size_t bucket : {kSmallBucket, WireGroup::kBucket}) {
      const bool rounded = (members == 2) == (bucket == kSmallBucket);
      const Exchange exchange(1000, 5, members, 300, rounded);
      const auto groups = testing::wire_groups(exchange.shape(), exchange.floats(), bucket);
      run_members(members, [&](int member) {
        std::mt19937 random(static_cast<uint32_t>(member));
        for (uint64_t step = 0; step < exchange.steps() && !HasFailure(); ++step)
          exchange.make(*groups[static_cast<size_t>(member)], member, step, random);
      });
      ASSERT_FALSE(HasFailure()) << members << " members, buckets of " << bucket;
    }
}

// Two members whose connection has a fault after so many bytes of one of them. How many have made
// all steps: the others have thrown Broken.
int made_despite(Cable::Fault fault, const Exchange& exchange, Cable::Side side, size_t bytes) {
  std::vector<std::unique_ptr<WireGroup>> groups;
  for (int member = 0; member < 2; ++member)
    groups.push_back(std::make_unique<WireGroup>(exchange.shape(), member, exchange.floats(),
                                                 "127.0.0.1", group::Identity(), group::PortRange{},
                                                 kSmallBucket));
  Cable cable(groups[0]->endpoint(), side, bytes + (side == Cable::dialing ? kGreeting : 0), fault);
  std::atomic<int> whole = 0;
  run_members(2, [&](int member) {
    WireGroup& group = *groups[static_cast<size_t>(member)];
    std::mt19937 random(static_cast<uint32_t>(bytes * 2) + static_cast<uint32_t>(member));
    try {
      group.connect({cable.endpoint(), ""}, patient());
      for (uint64_t step = 0; step < exchange.steps(); ++step)
        exchange.make(group, member, step, random);
      ++whole;
    } catch (const WireGroup::Broken&) {
    }
  });
  groups.clear();
  return whole;
}

// Tries the fault in every part of frames, until it comes after the last byte. Members neither hang
// nor take for a sum what is none.
void try_everywhere(Cable::Fault fault) {
  signal(SIGPIPE, SIG_IGN);
  constexpr size_t kStride = 29;  // bytes
  const Exchange exchange(600, 3, 2, 2);
  for (const Cable::Side side : {Cable::dialing, Cable::listening}) {
    size_t tries = 0;
    while (made_despite(fault, exchange, side, tries * kStride) < 2) {
      ASSERT_FALSE(::testing::Test::HasFailure())
          << "after " << tries * kStride << " bytes of side " << side;
      ++tries;
    }
    EXPECT_GT(tries * kStride, exchange.floats() * sizeof(float));
  }
}

TEST(WireExchangeTest, WhereverTheConnectionIsCutTheSumIsWholeOrThereIsNone) {
  try_everywhere(Cable::Fault::end);
}

TEST(WireExchangeTest, WhereverABitFlipsOnItsWayTheSumIsWholeOrThereIsNone) {
  try_everywhere(Cable::Fault::flip);
}

}  // namespace
}  // namespace muster::collective
