#include "operator/kube/cluster/lost_nodes.h"

#include <gtest/gtest.h>

#include "operator/api/status.h"
#include "tests/unit/operator/kube/fake_transport.h"
#include "tests/unit/operator/kube/pod_json.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;

const Time kBefore = *api::parse_time("2026-01-02T03:09:00Z");
const Time kAfter = *api::parse_time("2026-01-02T03:10:01Z");

constexpr const char* kByTaint = R"({"phase": "Running", "conditions": [
  {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]})";
constexpr const char* kByTaintAndNotReady = R"({"phase": "Running", "conditions": [
  {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"},
  {"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]})";

constexpr const char* kUnreachable =
    R"({"spec": {"taints": [{"key": "node.kubernetes.io/unreachable"}]}})";
constexpr const char* kReady =
    R"({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})";

struct Case {
  const char* name;
  Response node;
  const char* pod;
  Time now;
  bool lost;
};

TEST(LostNodes, AreKnownByTheNodeElseByThePod) {
  const Response forbidden = refusal(403, "Forbidden", "nodes is forbidden");
  const Case cases[] = {
      {"does not answer", answer(200, kUnreachable), kByTaint, kBefore, true},
      {"answers", answer(200, kReady), kByTaintAndNotReady, kAfter, false},
      {"is gone", refusal(404, "NotFound", "no such node"), kByTaint, kBefore, true},
      {"may not be looked at, the pod is to leave", forbidden, kByTaint, kBefore, false},
      {"may not be looked at, the pod was given up", forbidden, kByTaintAndNotReady, kBefore, true},
      {"may not be looked at, grace is over", forbidden, kByTaint, kAfter, true},
  };
  for (const Case& test : cases) {
    FakeTransport transport([&](const Request&) { return test.node; });
    const Client client(transport);
    LostNodes nodes(client);
    EXPECT_EQ(nodes.has_lost(pod_with(test.pod, kDeleted), test.now), test.lost) << test.name;
  }
}

TEST(LostNodes, AreNotAskedAboutForEachPod) {
  FakeTransport transport([](const Request&) { return answer(200, kReady); });
  const Client client(transport);
  LostNodes nodes(client);
  const Pod pod = pod_with(kByTaint, kDeleted);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(nodes.has_lost(pod, kBefore));
  EXPECT_EQ(transport.requests().size(), 1u);
  nodes.has_lost(pod, kBefore + LostNodes::kKept + 1s);
  EXPECT_EQ(transport.requests().size(), 2u);
}

TEST(LostNodes, AreNoneWhereNobodyAnswers) {
  FakeTransport transport([](const Request&) { return refusal(500, "InternalError", "etcd"); });
  const Client client(transport);
  LostNodes nodes(client);
  EXPECT_THROW(nodes.has_lost(pod_with(kByTaint, kDeleted), kAfter), Unavailable);
}

}  // namespace
}  // namespace muster::kube
