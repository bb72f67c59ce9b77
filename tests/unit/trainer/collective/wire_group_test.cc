#include "trainer/collective/wire_group.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "common/digest.h"
#include "proto/muster/rendezvous.pb.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/collective/group_of_threads.h"
#include "tests/unit/trainer/compute/sums.h"
#include "tests/unit/trainer/group/identity_of_tests.h"

namespace muster::collective {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::patient;
using testing::run_members;

GroupShape shape_of(int members) {
  GroupShape shape;
  shape.members = members;
  shape.replicas = members;
  return shape;
}

TEST(WireGroupTest, WhatTheSourceHasGoesToThoseThatAreToHaveIt) {
  constexpr int kSource = 1;
  const std::vector<bool> targets = {true, false, true, false};
  const auto groups = testing::wire_groups(shape_of(4), 1000);
  std::vector<std::vector<compute::Floats>> buffers(4);
  for (size_t member = 0; member < 4; ++member)
    buffers[member].assign(2, compute::Floats(300000, static_cast<float>(member)));
  buffers[kSource][1].back() = 7;
  run_members(4, [&](int member) {
    auto& own = buffers[static_cast<size_t>(member)];
    const std::vector<std::span<float>> spans(own.begin(), own.end());
    groups[static_cast<size_t>(member)]->broadcast(kSource, targets, spans, patient());
  });
  for (const size_t member : {0, 2}) EXPECT_EQ(buffers[member], buffers[kSource]);
  EXPECT_EQ(buffers[3], std::vector<compute::Floats>(2, compute::Floats(300000, 3)));
}

TEST(WireGroupTest, WhoIsAtAnotherStepIsNamed) {
  const auto groups = testing::wire_groups(shape_of(2), 1000);
  std::atomic<int> named = 0;
  run_members(2, [&](int member) {
    const compute::LossSums sums = compute::testing::classified(1, 0, 1);
    try {
      groups[static_cast<size_t>(member)]->all_reduce(static_cast<uint64_t>(5 + member),
                                                      Contribution(std::span(&sums, 1)), patient());
      ADD_FAILURE() << "member " << member << " has a sum";
    } catch (const WireGroup::Broken& error) {
      const std::string expected = "expected it at step " + std::to_string(5 + member) +
                                   ", found it at " + std::to_string(6 - member);
      named += std::string(error.what()).find(expected) != std::string::npos;
    }
  });
  EXPECT_EQ(named, 2);
}

// Member 1, which has connected and says what it likes.
class Liar {
 public:
  explicit Liar(const WireGroup& group) {
    WireEndpoint endpoint;
    EXPECT_TRUE(endpoint.ParseFromString(group.endpoint()));
    socket_ = connect_to(static_cast<int>(endpoint.port()));
    say(Greeting{endpoint.word(), 1, 2});
  }
  template <class Value>
  void say(const Value& value) {
    EXPECT_EQ(::send(socket_.get(), &value, sizeof value, MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof value));
  }
  template <class Value>
  void say(Connections::Frame frame, const Value& content) {
    const auto header = Connections::Header::of(frame);
    say(header);
    say(content);
    say(crc32c(std::as_bytes(std::span(&content, 1)), header.check));
  }

 private:
  Descriptor socket_;
};

// A member that is served first sends the header of the next step while others still wait for this
// one's.
TEST(WireGroupTest, HeadersOfTheNextStepKeepTheirPlaceWhereThereAreNoFloats) {
  constexpr int kMembers = 4;
  const auto groups = testing::wire_groups(shape_of(kMembers), 0);
  run_members(kMembers, [&](int member) {
    const compute::LossSums own = compute::testing::classified(1, 0, 1 + member);
    for (uint64_t step = 0; step < 2000; ++step) {
      const auto sums = groups[static_cast<size_t>(member)]->all_reduce(
          step, Contribution(std::span(&own, 1)), patient());
      ASSERT_EQ(sums.rows, 1 + 2 + 3 + 4);
    }
  });
}

// Two buckets of which each member adds up 64 floats. The kinds of frames: 0 a step's header, 1 a
// bucket's sums, 2 what they come to, 3 state, 4 a digest.
TEST(WireGroupTest, WhoSendsAFrameThatCannotComeNextIsNamed) {
  using Frame = Connections::Frame;
  struct Case {
    int wholes;  // first the first bucket's sums, so often
    Frame frame;
  };
  for (const Case& one :
       {Case{0, {5, 0}}, Case{0, {4, 1}}, Case{0, {~0u, ~0u}}, Case{0, {0, 1}}, Case{0, {1, 1}},
        Case{0, {1, 2}}, Case{0, {1, ~0u}}, Case{0, {2, 1}}, Case{0, {3, 0}}, Case{1, {1, 0}}}) {
    WireGroup group(shape_of(2), 0, 256, "127.0.0.1", group::Identity(), group::PortRange(), 128);
    Liar liar(group);
    group.connect({group.endpoint(), ""}, patient());
    for (int i = 0; i < one.wholes; ++i) liar.say(Frame{1, 0}, std::array<float, 64>());
    liar.say(Connections::Header::of(one.frame));
    const compute::LossSums sums = compute::testing::classified(1, 0, 1);
    try {
      group.all_reduce(0, Contribution(std::span(&sums, 1)), patient());
      ADD_FAILURE() << "there is a sum";
    } catch (const WireGroup::Broken& error) {
      EXPECT_THAT(error.what(), HasSubstr("member 1: expected a frame of a step, found kind " +
                                          std::to_string(one.frame.kind) + ", index " +
                                          std::to_string(one.frame.index)));
    }
  }
}

TEST(WireGroupTest, EveryMemberHearsTheDigestsOfAll) {
  const auto groups = testing::wire_groups(shape_of(3), 1000);
  run_members(3, [&](int member) {
    WireGroup& group = *groups[static_cast<size_t>(member)];
    const compute::LossSums sums = compute::testing::classified(1, 0, 1);
    for (uint32_t step = 0; step < 200; ++step) {
      Contribution contribution(std::span(&sums, 1));
      contribution.compare = step % 3 == static_cast<uint32_t>(member);
      group.all_reduce(step, contribution, patient());
      ASSERT_EQ(group.compare(), step % 3 == 0);
      if (!group.compare()) continue;
      const std::vector<uint32_t> expected = {10 * step, 10 * step + 1, 10 * step + 2};
      ASSERT_EQ(group.exchange(10 * step + static_cast<uint32_t>(member), patient()), expected);
    }
  });
}

TEST(WireGroupTest, AMemberThatLeavesOnceItKnowsWhoDiffersKeepsNobodyFromKnowing) {
  const std::vector<uint32_t> digests = {7, 7, 8};
  for (int time = 0; time < 100 && !HasFailure(); ++time) {
    auto groups = testing::wire_groups(shape_of(3), 10);
    run_members(3, [&](int member) {
      std::unique_ptr<WireGroup>& group = groups[static_cast<size_t>(member)];
      EXPECT_EQ(group->exchange(digests[static_cast<size_t>(member)], patient()), digests);
      group.reset();
    });
  }
}

TEST(WireGroupTest, WhatIsNoEndpointIsRefused) {
  WireGroup group(shape_of(2), 1, 1000, "127.0.0.1", group::identity_of_tests());
  EXPECT_THROW(group.connect({"nonsense", ""}, patient()), WireGroup::Broken);
  WireEndpoint endpoint;
  endpoint.set_host("127.0.0.1");
  endpoint.set_port(65536);
  EXPECT_THROW(group.connect({endpoint.SerializeAsString(), ""}, patient()), WireGroup::Broken);
}

TEST(WireGroupTest, WhereNobodyListensNobodyIsFound) {
  WireGroup group(shape_of(2), 1, 1000, "127.0.0.1", group::identity_of_tests());
  WireEndpoint endpoint;
  endpoint.set_host("no.such.host.invalid");
  endpoint.set_port(1);
  EXPECT_THROW(group.connect({endpoint.SerializeAsString(), ""}, patient()), WireGroup::Broken);
  endpoint.set_host("127.0.0.1");
  EXPECT_THROW(group.connect({endpoint.SerializeAsString(), ""}, patient()), WireGroup::Broken);
}

// It may be a port scanner, or a member of a generation that is over.
TEST(WireGroupTest, WhoDoesNotKnowTheWordIsNoMember) {
  WireGroup group(shape_of(2), 0, 1000, "127.0.0.1", group::Identity());
  WireEndpoint endpoint;
  ASSERT_TRUE(endpoint.ParseFromString(group.endpoint()));
  WireGroup member(shape_of(2), 1, 1000, "127.0.0.1", group::Identity());
  endpoint.set_word(endpoint.word() + 1);
  member.connect({endpoint.SerializeAsString(), ""}, patient());
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  const Session::Watch short_watch{{}, [&] { return std::chrono::steady_clock::now() > until; }};
  EXPECT_THROW(group.connect({"", ""}, short_watch), WireGroup::Broken);
}

// The one that opens the connection and the one that accepts it: each finds out.
TEST(WireGroupTest, WhoHasAnotherIdentityOrNoneIsNoMember) {
  const group::Identity others[] = {group::new_identity(), group::Identity()};
  for (const group::Identity& other : others) {
    WireGroup group(shape_of(2), 0, 1000, "127.0.0.1", group::identity_of_tests());
    const std::vector<std::string> endpoints = {group.endpoint(), ""};
    run_members(2, [&](int index) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
      const Session::Watch watch{{}, [&] { return std::chrono::steady_clock::now() > until; }};
      const compute::LossSums sums = compute::testing::classified(1, 0, 1);
      if (index == 0) {
        EXPECT_THROW(group.connect(endpoints, watch), WireGroup::Broken);
        return;
      }
      WireGroup member(shape_of(2), 1, 1000, "127.0.0.1", other);
      EXPECT_THROW(
          {
            member.connect(endpoints, watch);
            member.all_reduce(0, Contribution(std::span(&sums, 1)), watch);
          },
          WireGroup::Broken);
    });
  }
}

TEST(WireGroupTest, WhoConnectsAndSaysNothingKeepsNobodyWaiting) {
  WireGroup group(shape_of(2), 0, 1000, "127.0.0.1", group::identity_of_tests());
  WireEndpoint endpoint;
  ASSERT_TRUE(endpoint.ParseFromString(group.endpoint()));
  std::vector<Descriptor> strangers;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(endpoint.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < 300; ++i) {
    strangers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int fd = strangers.back().get();
    ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    if (i % 3 == 0) {
      ASSERT_EQ(::send(fd, "GET /", 5, 0), 5);
    }
  }
  const std::vector<std::string> endpoints = {group.endpoint(), ""};
  run_members(2, [&](int index) {
    if (index == 0) return group.connect(endpoints, patient());
    WireGroup member(shape_of(2), 1, 1000, "127.0.0.1", group::identity_of_tests());
    member.connect(endpoints, patient());
  });
}

// What the others send in the meantime is more than the kernel keeps for it on a connection that is
// new.
TEST(WireGroupTest, WhoComputesForLongIsWaitedFor) {
  constexpr size_t kFloats = 1 << 20;
  const auto groups = testing::wire_groups(shape_of(2), kFloats);
  run_members(2, [&](int member) {
    WireGroup& group = *groups[static_cast<size_t>(member)];
    group.broadcast(0, {false, false}, {}, patient());
    std::fill(group.own(0).begin(), group.own(0).end(), static_cast<float>(1 + member));
    if (member == 1) std::this_thread::sleep_for(1.2 * Connections::kUntaken);
    const compute::LossSums sums = compute::testing::classified(1, 0, 1);
    EXPECT_EQ(group.all_reduce(0, Contribution(std::span(&sums, 1)), patient()).rows, 2);
    EXPECT_THAT(group.sum(), Each(3.0f));
  });
}

TEST(WireGroupTest, AHostThatIsNotOursIsRefused) {
  // Of a block for documentation.
  EXPECT_THROW(WireGroup(shape_of(2), 0, 1000, "192.0.2.1", group::Identity()), Unavailable);
}

std::unique_ptr<WireGroup> group_at(const group::PortRange& ports, int member = 0) {
  return std::make_unique<WireGroup>(shape_of(2), member, 1000, "127.0.0.1", group::Identity(),
                                     ports);
}

int port_of(const WireGroup& group) {
  WireEndpoint endpoint;
  EXPECT_TRUE(endpoint.ParseFromString(group.endpoint()));
  return static_cast<int>(endpoint.port());
}

// Ports that the system gives to nobody by itself, others in each process.
group::PortRange some_ports() {
  const int first = 10000 + getpid() % 20000;
  return {first, first + 49};
}

TEST(WireGroupTest, ListensAtAFreePortOfThoseThatItIsGiven) {
  const group::PortRange ports = some_ports();
  const auto first = group_at(ports);
  const auto second = group_at(ports);
  EXPECT_GE(port_of(*first), ports.first);
  EXPECT_GT(port_of(*second), port_of(*first));
  EXPECT_LE(port_of(*second), ports.last);
}

TEST(WireGroupTest, SaysWhichPortsAreAllTaken) {
  const auto first = group_at(some_ports());
  const std::string port = std::to_string(port_of(*first));
  try {
    group_at({port_of(*first), port_of(*first)});
    ADD_FAILURE() << "two listen at one port";
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr("127.0.0.1, ports " + port + "-" + port));
  }
}

TEST(WireGroupTest, ListensAtThePortOfTheGenerationBefore) {
  auto group = group_at(some_ports());
  const int port = port_of(*group);
  for (int generation = 0; generation < 3; ++generation) {
    const std::vector<std::string> endpoints = {group->endpoint(), ""};
    const auto other = group_at({}, 1);
    run_members(2,
                [&](int index) { (index == 0 ? *group : *other).connect(endpoints, patient()); });
    group.reset();  // whoever ends a connection keeps it for a minute
    group = group_at({port, port});
  }
  EXPECT_EQ(port_of(*group), port);
}

TEST(WireGroupTest, WhoWaitsForAPeerThatNeverConnectsComesBackWhenItIsOver) {
  std::vector<std::unique_ptr<WireGroup>> groups;
  for (int member = 0; member < 2; ++member)
    groups.push_back(std::make_unique<WireGroup>(shape_of(2), member, 1000, "127.0.0.1",
                                                 group::identity_of_tests()));
  const std::vector<std::string> endpoints = {groups[0]->endpoint(), groups[1]->endpoint()};
  for (const size_t member : {1, 0}) {
    run_members(1, [&](int) {
      int looks = 0;
      const Session::Watch watch{{}, [&] { return ++looks > 3; }};
      const compute::LossSums sums = compute::testing::classified(1, 0, 1);
      EXPECT_THROW(
          {
            groups[member]->connect(endpoints, watch);
            groups[member]->all_reduce(0, Contribution(std::span(&sums, 1)), watch);
          },
          WireGroup::Broken);
    });
  }
}

TEST(WireGroupTest, WhoConnectsToAPeerThatIsGoneComesBack) {
  auto gone =
      std::make_unique<WireGroup>(shape_of(2), 1, 1000, "127.0.0.1", group::identity_of_tests());
  const std::string endpoint = gone->endpoint();
  gone.reset();
  WireGroup group(shape_of(2), 0, 1000, "127.0.0.1", group::identity_of_tests());
  run_members(1, [&](int) {
    int looks = 0;
    const Session::Watch watch{{}, [&] { return ++looks > 5; }};
    const compute::LossSums sums = compute::testing::classified(1, 0, 1);
    EXPECT_THROW(
        {
          group.connect({"", endpoint}, watch);
          group.all_reduce(0, Contribution(std::span(&sums, 1)), watch);
        },
        WireGroup::Broken);
  });
}

TEST(WireGroupTest, ItIsGoodForNothingOnceItIsOver) {
  const auto groups = testing::wire_groups(shape_of(2), 1000);
  const compute::LossSums sums = compute::testing::classified(1, 0, 1);
  run_members(1, [&](int) {
    const Session::Watch over{{}, [] { return true; }};
    EXPECT_THROW(groups[0]->all_reduce(0, Contribution(std::span(&sums, 1)), over),
                 WireGroup::Broken);
    EXPECT_THROW(groups[0]->all_reduce(0, Contribution(std::span(&sums, 1)), patient()),
                 WireGroup::Broken);
    EXPECT_THROW(groups[1]->all_reduce(0, Contribution(std::span(&sums, 1)), patient()),
                 WireGroup::Broken);
  });
}

}  // namespace
}  // namespace muster::collective
