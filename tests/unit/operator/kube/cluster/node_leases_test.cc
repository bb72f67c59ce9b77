#include "operator/kube/cluster/node_leases.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/kube/fake_transport.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;

class NodeLeasesTest : public testing::Test {
 protected:
  std::string renewed_ = "2026-01-02T03:04:05.000000Z";
  std::optional<Response> other_answer_;
  BootTime now_ = 1000s;
  FakeTransport transport_{[this](const Request&) {
    const Json lease = {{"kind", "Lease"}, {"spec", {{"renewTime", renewed_}}}};
    return other_answer_.value_or(answer(200, lease.dump()));
  }};
  const Client client_{transport_};
  NodeLeases leases_{client_, [this] { return now_; }};

  // Asks whenever a request is due during `time`; whether the node was ever silent.
  bool becomes_silent_within(std::chrono::seconds time) {
    for (const BootTime end = now_ + time; now_ <= end;) {
      std::chrono::milliseconds again{};
      if (leases_.is_silent("node-1", again)) return true;
      EXPECT_GT(again.count(), 0);
      now_ += again;
    }
    return false;
  }
};

TEST_F(NodeLeasesTest, AreSilentWhenTheyWereNotRenewedForFifteenSecondsThatWeHaveSeen) {
  const BootTime begin = now_;
  EXPECT_TRUE(becomes_silent_within(60s));
  EXPECT_EQ(now_ - begin, NodeLeases::kSilence);
  EXPECT_LE(transport_.requests().size(), 4U);
  EXPECT_EQ(transport_.requests()[0].path,
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1");
  renewed_ = "2026-01-02T03:04:45.000000Z";
  now_ += 5s;
  EXPECT_FALSE(becomes_silent_within(10s)) << "it has returned";
}

TEST_F(NodeLeasesTest, SayNothingByTheTimeThatIsWrittenInThem) {
  renewed_ = "1999-01-02T03:04:05.000000Z";
  EXPECT_FALSE(becomes_silent_within(14s));
}

TEST_F(NodeLeasesTest, BeginAnewWithEachRenewal) {
  for (int i = 0; i < 5; ++i) {
    renewed_ = std::to_string(i);
    EXPECT_FALSE(becomes_silent_within(9s));
  }
}

TEST_F(NodeLeasesTest, BeginAnewWhereTheApiServerDoesNotAnswer) {
  EXPECT_FALSE(becomes_silent_within(12s));
  other_answer_ = refusal(500, "InternalError", "etcd");
  EXPECT_FALSE(becomes_silent_within(60s)) << "nobody can renew a lease now";
  other_answer_.reset();
  EXPECT_FALSE(becomes_silent_within(14s));
  EXPECT_TRUE(becomes_silent_within(5s));
}

TEST_F(NodeLeasesTest, BeginAnewWhereNobodyAskedForLong) {
  std::chrono::milliseconds again{};
  leases_.is_silent("node-1", again);
  now_ += 60s;
  EXPECT_FALSE(leases_.is_silent("node-1", again));
}

TEST_F(NodeLeasesTest, SayNothingWhereThereAreNoneOrWeMayNotLook) {
  for (const Response& response :
       {refusal(404, "NotFound", "no lease"), refusal(403, "Forbidden", "leases is forbidden")}) {
    other_answer_ = response;
    EXPECT_FALSE(becomes_silent_within(60s));
  }
}

TEST_F(NodeLeasesTest, AreNotAskedAboutMoreOftenWhereThereIsNoAnswer) {
  std::chrono::milliseconds again{};
  other_answer_ = refusal(403, "Forbidden", "leases is forbidden");
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(leases_.is_silent("node-1", again));
  EXPECT_EQ(transport_.requests().size(), 1U);
  EXPECT_EQ(again, NodeLeases::kEvery);
  now_ += NodeLeases::kEvery;
  EXPECT_FALSE(leases_.is_silent("node-1", again));
  EXPECT_EQ(transport_.requests().size(), 2U);
}

}  // namespace
}  // namespace muster::kube
