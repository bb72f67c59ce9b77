#include "trainer/group/acceptor.h"

#include <gmock/gmock.h>
#include <netinet/tcp.h>

#include "common/error.h"
#include "tests/unit/common/net/listener.h"

namespace muster::group {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kLong{3600000};

// Keeps what it is given, as a server does.
class Taker {
 public:
  explicit Taker(const Acceptor::Limits& limits, const std::string& host = "127.0.0.1")
      : port_(free_port()), acceptor_(host + ":" + std::to_string(port_), limits) {
    acceptor_.start([this](Descriptor socket) {
      const MutexLock lock(mutex_);
      taken_.push_back(std::move(socket));
      changed_.notify_all();
    });
  }

  Acceptor& acceptor() { return acceptor_; }
  int port() const { return port_; }
  // Waits until there are `count` of them.
  void await(size_t count) {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() MUSTER_REQUIRES(mutex_) { return taken_.size() >= count; });
  }
  int descriptor(size_t index) {
    const MutexLock lock(mutex_);
    return taken_[index].get();
  }
  PeerAddress peer(size_t index) { return peer_address(descriptor(index)); }
  void end(size_t index) {
    const MutexLock lock(mutex_);
    shutdown(taken_[index].get(), SHUT_RDWR);
    taken_[index].reset();
  }
  Descriptor connect() {
    Descriptor socket = connect_to(port_);
    await(++connected_);
    return socket;
  }

 private:
  const int port_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Descriptor> taken_ MUSTER_GUARDED_BY(mutex_);
  size_t connected_ = 0;
  Acceptor acceptor_;
};

TEST(AcceptorTest, AStrangerMayStayForSoLongAndWhoIsOfTheJobForEver) {
  Taker taker({{.of_address = 9, .in_all = 9}, milliseconds(3000), kLong});
  const Descriptor peer = taker.connect();
  taker.acceptor().welcome("ipv4:" + to_text(taker.peer(0)));
  const Descriptor stranger = taker.connect();
  taker.acceptor().welcome("ipv4:127.0.0.1:1");
  EXPECT_TRUE(is_closed(stranger));
  EXPECT_TRUE(is_open(peer));
}

TEST(AcceptorTest, AStrangerWhoSendsTooMuchGoesAndOfManyThoseWhoSendMost) {
  Taker taker({{.of_address = 9, .in_all = 9}, kLong, kLong, 1000, 1500});
  const auto send_from = [](const Descriptor& socket, size_t bytes) {
    const std::string text(bytes, 'x');
    EXPECT_EQ(send(socket.get(), text.data(), text.size(), 0), static_cast<ssize_t>(bytes));
  };
  const Descriptor peer = taker.connect();
  taker.acceptor().welcome("ipv4:" + to_text(taker.peer(0)));
  send_from(peer, 5000);
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 4; ++i) strangers.push_back(taker.connect());
  send_from(strangers[0], 1001);
  EXPECT_TRUE(is_closed(strangers[0]));
  send_from(strangers[1], 500);
  send_from(strangers[2], 700);
  EXPECT_TRUE(is_open(strangers[1]));
  send_from(strangers[3], 600);
  EXPECT_TRUE(is_closed(strangers[2]));
  EXPECT_TRUE(is_open(peer));
  EXPECT_TRUE(is_open(strangers[1]));
  EXPECT_TRUE(is_open(strangers[3]));
}

TEST(AcceptorTest, OfTooManyStrangersTheOldestGoAndNobodyElse) {
  Taker taker({{.of_address = 2, .in_all = 9}, kLong, kLong});
  const Descriptor peer = taker.connect();
  taker.acceptor().welcome("ipv4:" + to_text(taker.peer(0)));
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 4; ++i) strangers.push_back(taker.connect());
  EXPECT_TRUE(is_closed(strangers[0]));
  EXPECT_TRUE(is_closed(strangers[1]));
  EXPECT_TRUE(is_open(strangers[2]));
  EXPECT_TRUE(is_open(strangers[3]));
  EXPECT_TRUE(is_open(peer));
}

TEST(AcceptorTest, AStrangerWhomTheServerSendsAwayCountsNoMore) {
  Taker taker({{.of_address = 2, .in_all = 9}, kLong, kLong});
  const Descriptor first = taker.connect();
  const Descriptor second = taker.connect();
  taker.end(1);
  const Descriptor third = taker.connect();
  EXPECT_TRUE(is_closed(second));
  EXPECT_TRUE(is_open(first));
  EXPECT_TRUE(is_open(third));
}

TEST(AcceptorTest, KnowsAPeerByItsAddressOfIPv6) {
  Taker taker({{.of_address = 1, .in_all = 9}, kLong, kLong}, "[::]");
  const Descriptor by_ipv4 = taker.connect();
  EXPECT_EQ(taker.peer(0).host, "127.0.0.1");
  taker.acceptor().welcome("ipv4:" + to_text(taker.peer(0)));
  const Descriptor by_ipv6(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  address.sin6_port = htons(static_cast<uint16_t>(taker.port()));
  ASSERT_EQ(::connect(by_ipv6.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  taker.await(2);
  taker.acceptor().welcome("ipv6:%5B::1%25lo%5D:" + std::to_string(taker.peer(1).port));
  const Descriptor strangers[] = {connect_to(taker.port()), connect_to(taker.port())};
  taker.await(4);
  EXPECT_TRUE(is_closed(strangers[0]));
  EXPECT_TRUE(is_open(by_ipv4));
  EXPECT_TRUE(is_open(by_ipv6));
}

TEST(AcceptorTest, ItsConnectionsSendAtOnceAndEndWhenNothingIsTaken) {
  Taker taker({{.of_address = 9, .in_all = 9}, kLong, milliseconds(4321)});
  const Descriptor peer = taker.connect();
  const auto option = [&](int name) {
    int value = 0;
    socklen_t size = sizeof value;
    getsockopt(taker.descriptor(0), IPPROTO_TCP, name, &value, &size);
    return value;
  };
  EXPECT_NE(option(TCP_NODELAY), 0);
  EXPECT_EQ(option(TCP_USER_TIMEOUT), 4321);
}

TEST(AcceptorTest, OnceStoppedItListensNoMoreAndLeavesWhatItHasAccepted) {
  Taker taker({{.of_address = 9, .in_all = 9}, kLong, kLong});
  const Descriptor peer = taker.connect();
  taker.acceptor().stop();
  EXPECT_FALSE(connect_to(taker.port()));
  EXPECT_TRUE(is_open(peer));
}

TEST(AcceptorTest, AnAddressThatIsNotFreeOrNotOursIsNamed) {
  const Listener taken;
  for (const std::string& address : {taken.address(), std::string("192.0.2.1:4242"),
                                     std::string("[::1]:") + std::to_string(-1)}) {
    try {
      const Acceptor acceptor(address, {{.of_address = 9, .in_all = 9}, kLong, kLong});
      ADD_FAILURE() << address;
    } catch (const Unavailable& error) {
      EXPECT_THAT(error.what(), HasSubstr(address + ": cannot listen there: "));
    }
  }
}

}  // namespace
}  // namespace muster::group
