#include "operator/kube/cluster/pod_troubles.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/unit/operator/kube/fake_transport.h"
#include "tests/unit/operator/kube/pod_json.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;

const Time kBegin{std::chrono::hours(24 * 365 * 56)};

Json event(const std::string& type, const std::string& reason, const std::string& message,
           const std::string& time) {
  return {{"type", type}, {"reason", reason}, {"message", message}, {"lastTimestamp", time}};
}

Response list_of(const std::vector<Json>& events) {
  return answer(200, Json{{"metadata", Json::object()}, {"items", events}}.dump());
}

constexpr const char* kEarly = "2026-01-02T03:00:00Z";
constexpr const char* kLate = "2026-01-02T03:00:09Z";

TEST(PodTroubles, AreWhatTheNewestEventTells) {
  const Json scheduling = event("Warning", "FailedScheduling", "no node", kEarly);
  const Json mount = event("Warning", "FailedMount", "no such configmap", kLate);
  const Json pulling = event("Normal", "Pulling", "pulls an image", kLate);
  const Json sandbox = event("Normal", "SandboxChanged", "made anew", kLate);
  struct Case {
    const char* name;
    std::vector<Json> events;
    std::string reason;
  };
  for (const Case& test : {Case{"nothing was told", {}, ""},
                           Case{"the newer of two", {mount, scheduling}, "FailedMount"},
                           Case{"it goes on", {scheduling, pulling}, ""},
                           Case{"at the same time", {pulling, mount}, "FailedMount"},
                           Case{"a sandbox again", {scheduling, sandbox}, "FailedScheduling"}}) {
    EXPECT_EQ(newest_trouble(test.events).reason, test.reason) << test.name;
  }
}

TEST(PodTroubles, HaveTheSameWordsForEachSandbox) {
  const std::string identity(64, 'a');
  EXPECT_EQ(newest_trouble({event("Warning", "FailedCreatePodSandBox",
                                  "sandbox \"" + identity + "\" of face: no network", kLate)})
                .words,
            "sandbox \"...\" of face: no network");
}

TEST(PodTroubles, AreAskedForSeldomAndOnlyOfAPodThatIsPendingForAWhile) {
  FakeTransport transport([](const Request&) {
    return list_of({event("Warning", "FailedMount", "no volume", kLate)});
  });
  const Client client(transport);
  PodTroubles troubles(client);
  const Pod pod = pod_with(R"({"phase": "Pending"})");
  Time again{};
  EXPECT_EQ(troubles.look(pod, kBegin, again).reason, "");
  EXPECT_EQ(again, kBegin + 3s);
  EXPECT_TRUE(transport.requests().empty());
  EXPECT_EQ(troubles.look(pod, again, again).words, "no volume");
  EXPECT_EQ(again, kBegin + 13s);
  EXPECT_EQ(query(transport.requests()[0], "fieldSelector"), "involvedObject.uid=pod-uid");
  EXPECT_EQ(troubles.look(pod, again - 1ms, again).reason, "FailedMount");
  EXPECT_EQ(transport.requests().size(), 1U);
  for (const auto pause : {20s, 40s, 60s, 60s}) {
    const Time now = again;
    troubles.look(pod, now, again);
    EXPECT_EQ(again, now + pause);
  }
}

TEST(PodTroubles, OfManyPodsAreAskedForOneAfterTheOther) {
  FakeTransport transport([](const Request&) { return list_of({}); });
  const Client client(transport);
  PodTroubles troubles(client);
  const Pod one = pod_with(R"({"phase": "Pending"})");
  const Pod other = pod_with(R"({"phase": "Pending"})", R"({"uid": "other-uid"})");
  Time again{};
  troubles.look(one, kBegin, again);
  troubles.look(other, kBegin, again);
  troubles.look(one, kBegin + 5s, again);
  troubles.look(other, kBegin + 5s, again);
  EXPECT_EQ(transport.requests().size(), 1U);
  EXPECT_EQ(again, kBegin + 5s + 200ms);
  troubles.look(other, again, again);
  EXPECT_EQ(transport.requests().size(), 2U);
}

// Each look is a pass over a whole job.
TEST(PodTroubles, OfManyPodsAreLookedForWhenItIsTheirTurn) {
  constexpr size_t kPods = 200;
  FakeTransport transport([](const Request&) { return list_of({}); });
  const Client client(transport);
  PodTroubles troubles(client);
  std::multimap<Time, Pod> due;
  for (size_t i = 0; i < kPods; ++i) {
    const std::string uid = R"({"uid": "pod-)" + std::to_string(i) + R"("})";
    due.emplace(kBegin, pod_with(R"({"phase": "Pending"})", uid.c_str()));
  }
  size_t looks = 0;
  std::set<std::string> asked;
  while (asked.size() < kPods && looks < 10 * kPods) {
    const auto next = due.extract(due.begin());
    Time again{};
    troubles.look(next.mapped(), next.key(), again);
    ++looks;
    ASSERT_GT(again, next.key());
    due.emplace(again, next.mapped());
    for (const Request& request : transport.requests())
      asked.insert(query(request, "fieldSelector"));
  }
  EXPECT_EQ(asked.size(), kPods);
  EXPECT_LE(looks, 4 * kPods) << "the first look, the wait for a turn, the question, and the next";
}

TEST(PodTroubles, StayAsTheyAreWhereAQuestionFails) {
  Response response = list_of({event("Warning", "FailedMount", "no volume", kLate)});
  FakeTransport transport([&](const Request&) { return response; });
  const Client client(transport);
  PodTroubles troubles(client);
  const Pod pod = pod_with(R"({"phase": "Pending"})");
  Time again{};
  troubles.look(pod, kBegin, again);
  troubles.look(pod, again, again);
  response = refusal(403, "Forbidden", "events is forbidden");
  EXPECT_EQ(troubles.look(pod, again, again).reason, "FailedMount");
}

TEST(Refusals, NameTheQuota) {
  EXPECT_EQ(quota_in("pods \"x\" is forbidden: exceeded quota: compute, requested: pods=1"),
            "compute: requested: pods=1");
  EXPECT_EQ(quota_in("failed quota: compute: must specify cpu"), "compute: must specify cpu");
  EXPECT_EQ(quota_in("exceeded quota: q"), "q");
  EXPECT_EQ(quota_in("admission webhook \"w\" denied the request"), std::nullopt);
  EXPECT_EQ(without_object_name("pods \"x\" is forbidden: no"), "no");
  EXPECT_EQ(without_object_name("no"), "no");
}

}  // namespace
}  // namespace muster::kube
