#include "operator/kube/cluster/own_writes.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/kube/pod_json.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;

constexpr Time kNow(std::chrono::hours(24 * 365 * 56));
constexpr const char* kPending = R"({"phase": "Pending"})";
constexpr const char* kRunning = R"({"phase": "Running", "containerStatuses": [
  {"name": "trainer", "ready": true, "state": {"running": {}}}]})";
constexpr const char* kFailed = R"({"phase": "Failed", "containerStatuses": [
  {"name": "trainer", "state": {"terminated": {"exitCode": 1}}}]})";
constexpr const char* kOwned = R"({"ownerReferences": [
  {"uid": "job-uid", "name": "mnist", "controller": true}]})";

TEST(OwnWrites, ShowACreationUntilTheViewDoes) {
  OwnWrites writes;
  const Pod pod = pod_with(kPending, kOwned);
  writes.creating(pod.meta.key());
  EXPECT_TRUE(writes.complete({}, "job-uid", kNow).empty()) << "not answered";
  writes.created(pod, kNow);
  ASSERT_EQ(writes.complete({}, "job-uid", kNow).size(), 1u);
  EXPECT_TRUE(writes.complete({}, "other", kNow).empty());
  EXPECT_EQ(writes.complete({pod}, "job-uid", kNow).size(), 1u);
  EXPECT_FALSE(writes.is_news(nullptr, &pod));
  EXPECT_TRUE(writes.complete({}, "job-uid", kNow).empty());
}

TEST(OwnWrites, NoticeThatTheViewWasFasterThanTheAnswer) {
  OwnWrites writes;
  const Pod pod = pod_with(kPending, kOwned);
  writes.creating(pod.meta.key());
  EXPECT_FALSE(writes.is_news(nullptr, &pod));
  writes.created(pod, kNow);
  EXPECT_TRUE(writes.complete({}, "job-uid", kNow).empty());
}

TEST(OwnWrites, AreForgottenWhereTheViewNeverShowsThem) {
  OwnWrites writes;
  const Pod pod = pod_with(kPending, kOwned);
  writes.creating(pod.meta.key());
  writes.created(pod, kNow);
  writes.removed("pod-uid", kNow);
  EXPECT_TRUE(writes.complete({}, "job-uid", kNow + OwnWrites::kPatience + 1ms).empty());
  EXPECT_FALSE(writes.complete({pod}, "job-uid", kNow + 2min)[0].meta.deleted);
}

TEST(OwnWrites, ARefusedCreationIsNone) {
  OwnWrites writes;
  const Pod pod = pod_with(kPending, kOwned);
  writes.creating(pod.meta.key());
  writes.not_created(pod.meta.key());
  EXPECT_TRUE(writes.is_news(nullptr, &pod));
}

TEST(OwnWrites, ShowARemovalUntilTheViewDoes) {
  OwnWrites writes;
  const Pod pod = pod_with(kRunning);
  writes.removed("pod-uid", kNow);
  EXPECT_TRUE(writes.complete({pod}, "", kNow)[0].meta.deleted);
  const Pod leaving = pod_with(kRunning, kDeleted);
  EXPECT_FALSE(writes.is_news(&pod, &leaving));
  writes.not_removed("pod-uid");
  EXPECT_FALSE(writes.complete({pod}, "", kNow)[0].meta.deleted);
  EXPECT_TRUE(writes.is_news(&pod, &leaving)) << "somebody else's";
}

TEST(OwnWrites, NewsIsWhatThePlanWouldSee) {
  OwnWrites writes;
  const Pod pending = pod_with(kPending), running = pod_with(kRunning), failed = pod_with(kFailed);
  const Pod relabelled =
      pod_with(kRunning, R"({"resourceVersion": "7", "annotations": {"a": "b"}})");
  EXPECT_TRUE(writes.is_news(nullptr, &pending));
  EXPECT_TRUE(writes.is_news(&pending, &running));
  EXPECT_TRUE(writes.is_news(&running, &failed));
  EXPECT_FALSE(writes.is_news(&running, &relabelled));
  EXPECT_TRUE(writes.is_news(&running, nullptr)) << "gone by force";
  EXPECT_TRUE(writes.is_news(&failed, nullptr)) << "gone uncounted";
  const Pod counted = pod_with(kFailed, R"({"finalizers": []})");
  EXPECT_FALSE(writes.is_news(&counted, nullptr));
}

TEST(OwnWrites, ACreationThatHasAdvancedIsNews) {
  OwnWrites writes;
  const Pod pod = pod_with(kPending, kOwned), failed = pod_with(kFailed, kOwned);
  writes.creating(pod.meta.key());
  writes.created(pod, kNow);
  EXPECT_TRUE(writes.is_news(nullptr, &failed));
}

}  // namespace
}  // namespace muster::kube
