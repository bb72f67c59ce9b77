#include "operator/kube/api/codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "operator/api/status.h"

namespace muster::kube {
namespace {

const char* const kPod = R"({
  "metadata": {"name": "mnist-worker-0-abcde", "namespace": "team", "uid": "u1",
               "annotations": {"other": "x", "muster.dev/checkpoint": "now"},
    "resourceVersion": "42", "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z",
    "deletionTimestamp": "2026-01-02T03:05:05Z", "labels": {"muster.dev/job": "mnist", "a": "b"},
    "managedFields": [{"manager": "x"}], "finalizers": ["muster.dev/tracking"],
    "ownerReferences": [{"kind": "A", "name": "other", "uid": "u8"},
                        {"kind": "TrainingJob", "name": "mnist", "uid": "u9", "controller": true}]},
  "spec": {"nodeName": "n1", "containers": [{"image": "i", "name": "trainer"}, {"name": "side"}]},
  "status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory", "podIP": "10.0.0.7",
    "startTime": "2026-01-02T03:04:06Z",
    "conditions": [{"type": "Ready", "status": "False", "reason": "PodFailed"},
                   {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                    "lastTransitionTime": "2026-01-02T03:04:07Z"}],
    "containerStatuses": [
      {"name": "trainer", "ready": false, "restartCount": 2,
       "state": {"terminated": {"exitCode": 137, "signal": 9, "reason": "OOMKilled",
         "message": "last \"words\"", "startedAt": "2026-01-02T03:04:08Z",
         "finishedAt": "2026-01-02T03:04:09Z"}},
       "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": "before",
         "finishedAt": "2026-01-02T03:04:07Z"}}},
      {"name": "side", "ready": true, "restartCount": 0,
       "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}, "lastState": {}}],
    "initContainerStatuses": [{"name": "init", "state": {"running": {"startedAt": null}}}]}})";

TEST(Codec, ReadsWhatDecisionsNeedOfAPod) {
  const Pod pod = decode_object<Pod>(kPod);
  EXPECT_EQ(pod.meta.key(), "team/mnist-worker-0-abcde");
  EXPECT_EQ(pod.meta.uid, "u1");
  EXPECT_EQ(pod.meta.resource_version, "42");
  EXPECT_EQ(pod.meta.generation, 3);
  EXPECT_EQ(pod.meta.created, api::parse_time("2026-01-02T03:04:05Z"));
  EXPECT_EQ(pod.meta.deleted, api::parse_time("2026-01-02T03:05:05Z"));
  EXPECT_EQ(pod.meta.label("muster.dev/job"), "mnist");
  EXPECT_EQ(pod.meta.label("none"), "");
  EXPECT_EQ(pod.meta.finalizers, std::vector<std::string>{"muster.dev/tracking"});
  EXPECT_EQ(pod.meta.owner_uid, "u9");
  EXPECT_EQ(pod.meta.checkpoint_request, "now");
  EXPECT_EQ(pod.node, "n1");
  EXPECT_EQ(pod.ip, "10.0.0.7");
  EXPECT_EQ(pod.phase, "Failed");
  EXPECT_EQ(pod.reason, "Evicted");
  EXPECT_EQ(pod.message, "low on memory");
  ASSERT_NE(pod.condition("DisruptionTarget"), nullptr);
  EXPECT_TRUE(pod.condition("DisruptionTarget")->status);
  EXPECT_FALSE(pod.condition("Ready")->status);
  EXPECT_EQ(pod.condition("PodScheduled"), nullptr);
}

TEST(Codec, ReadsHowContainersEnded) {
  const Pod pod = decode_object<Pod>(kPod);
  ASSERT_EQ(pod.container_statuses.size(), 2U);
  const ContainerStatus& trainer = pod.container_statuses[0];
  EXPECT_EQ(trainer.state, ContainerStatus::State::terminated);
  EXPECT_EQ(trainer.exit_code, 137);
  EXPECT_EQ(trainer.reason, "OOMKilled");
  EXPECT_EQ(trainer.message, "last \"words\"");
  EXPECT_EQ(trainer.restarts, 2);
  EXPECT_EQ(trainer.finished, api::parse_time("2026-01-02T03:04:09Z"));
  EXPECT_EQ(trainer.last_exit_code, 1);
  EXPECT_EQ(trainer.last_message, "before");
  const ContainerStatus& side = pod.container_statuses[1];
  EXPECT_EQ(side.state, ContainerStatus::State::waiting);
  EXPECT_EQ(side.reason, "CrashLoopBackOff");
  EXPECT_EQ(side.exit_code, std::nullopt);
  EXPECT_EQ(side.last_exit_code, std::nullopt);
  ASSERT_EQ(pod.init_container_statuses.size(), 1U);
  EXPECT_EQ(pod.init_container_statuses[0].state, ContainerStatus::State::running);
}

TEST(Codec, ReadsALongListAndAnEmptyOne) {
  std::string text =
      R"({"kind":"PodList","metadata":{"resourceVersion":"7","continue":"more"},"items":[)";
  for (int i = 0; i < 1000; ++i) {
    text +=
        std::string(i == 0 ? "" : ",") + R"({"metadata":{"name":"p)" + std::to_string(i) + R"("}})";
  }
  const ListPage<Pod> page = decode_list<Pod>(text + "]}");
  EXPECT_EQ(page.resource_version, "7");
  EXPECT_EQ(page.next, "more");
  ASSERT_EQ(page.items.size(), 1000U);
  EXPECT_EQ(page.items[999].meta.name, "p999");
  // What Go writes for an empty slice.
  const auto none = decode_list<Service>(R"({"items":null,"metadata":{"resourceVersion":"8"}})");
  EXPECT_TRUE(none.items.empty());
}

TEST(Codec, ReadsServices) {
  const auto service = decode_object<Service>(
      R"({"metadata":{"name":"mnist","namespace":"team","labels":null},
          "spec":{"clusterIP":"None","selector":{"muster.dev/current":"true"}}})");
  EXPECT_EQ(service.meta.key(), "team/mnist");
}

TEST(Codec, KeepsTrainingJobsWholeButForManagedFields) {
  const auto job = decode_object<WholeObject>(
      R"({"metadata":{"name":"mnist","managedFields":[{"a":1}],"resourceVersion":"5"},
          "spec":{"training":{"optimizer":{"learningRate":0.001},"steps":9007199254740993},
                  "managedFields":["\u00e9",18446744073709551615,-1,true,null]}})");
  EXPECT_EQ(job.meta.resource_version, "5");
  const Json value = job.json();
  EXPECT_FALSE(value["metadata"].contains("managedFields"));
  EXPECT_EQ(value["metadata"]["name"], "mnist");
  EXPECT_EQ(value["spec"]["training"]["optimizer"]["learningRate"], 0.001);
  EXPECT_EQ(value["spec"]["training"]["steps"], 9007199254740993);
  EXPECT_EQ(value["spec"]["managedFields"],
            Json::parse(R"(["\u00e9",18446744073709551615,-1,true,null])"));
}

TEST(Codec, ReadsEventsOfAWatch) {
  const auto added = decode_event<Pod>(
      R"({"type":"ADDED","object":{"metadata":{"name":"p","resourceVersion":"9"}}})");
  EXPECT_EQ(added.type, EventType::added);
  EXPECT_EQ(added.object.meta.name, "p");
  const auto swapped = decode_event<Pod>(
      R"({"object":{"metadata":{"name":"p","resourceVersion":"9"}},"type":"DELETED"})");
  EXPECT_EQ(swapped.type, EventType::deleted);
  const auto bookmark = decode_event<Pod>(
      R"({"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}})");
  EXPECT_EQ(bookmark.type, EventType::bookmark);
  EXPECT_EQ(bookmark.object.meta.resource_version, "12");
  const auto error = decode_event<Pod>(
      R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}})");
  EXPECT_EQ(error.type, EventType::error);
  EXPECT_EQ(error.status.code, 410);
  EXPECT_EQ(error.status.message, "too old");
}

// 1e20, as the API server writes it.
TEST(Codec, ReadsIntegersThatOnlyDoublesHold) {
  const std::string spec = R"("spec":{"slope":100000000000000000000,
      "others":[-100000000000000000000,18446744073709551616,18446744073709551615,
                -9223372036854775809,-9223372036854775808,"100000000000000000000\\"]})";
  const std::string job =
      R"({"metadata":{"name":"line","namespace":"team","resourceVersion":"5"},)" + spec + "}";
  const auto check = [](const WholeObject& object) {
    EXPECT_EQ(object.meta.key(), "team/line");
    const Json value = object.json()["spec"];
    EXPECT_EQ(value["slope"].get<double>(), 1e20);
    EXPECT_EQ(value["others"],
              (Json{-1e20, 18446744073709551616.0, 18446744073709551615U, -9223372036854775808.0,
                    std::numeric_limits<int64_t>::min(), "100000000000000000000\\"}));
  };
  check(decode_object<WholeObject>(job));
  const auto page = decode_list<WholeObject>(R"({"metadata":{"resourceVersion":"7"},"items":[)" +
                                             job + R"(,{"metadata":{"name":"other"}}]})");
  EXPECT_TRUE(page.unread.empty());
  ASSERT_EQ(page.items.size(), 2U);
  check(page.items[0]);
  const auto event = decode_event<WholeObject>(R"({"type":"MODIFIED","object":)" + job + "}");
  EXPECT_EQ(event.unread, "");
  check(event.object);
}

std::string nested(int depth) {
  const auto levels = static_cast<size_t>(depth);
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(Codec, NamesAnObjectThatCannotBeReadAndReadsTheOthers) {
  const std::string deep =
      R"({"spec":)" + nested(5000) +
      R"(,"metadata":{"name":"deep","namespace":"team","resourceVersion":"5"}})";
  const auto page = decode_list<WholeObject>(
      R"({"items":[{"metadata":{"name":"a"}},)" + deep +
      R"(,{"metadata":{"name":7}},{"metadata":{"name":"b"}},{"metadata":{"name":"c","namespace":"a/b"}}],)"
      R"("metadata":{"resourceVersion":"7"}})");
  ASSERT_EQ(page.items.size(), 2U);
  EXPECT_EQ(page.items[0].meta.name, "a");
  EXPECT_EQ(page.items[1].meta.name, "b");
  ASSERT_EQ(page.unread.size(), 3U);
  EXPECT_NE(page.unread[2].why.find("found \"a/b\""), std::string::npos) << page.unread[2].why;
  EXPECT_EQ(page.unread[0].key, "team/deep");
  EXPECT_NE(page.unread[0].why.find("too deep"), std::string::npos) << page.unread[0].why;
  EXPECT_EQ(page.unread[1].key, "");
  const auto event = decode_event<WholeObject>(R"({"type":"DELETED","object":)" + deep + "}");
  EXPECT_EQ(event.type, EventType::deleted);
  EXPECT_EQ(event.object.meta.key(), "team/deep");
  EXPECT_EQ(event.object.meta.resource_version, "5");
  EXPECT_NE(event.unread, "");
}

TEST(Codec, ReadsAPodWithAGracePeriodOfACentury) {
  const Pod pod =
      decode_object<Pod>(R"({"metadata":{"name":"a","deletionGracePeriodSeconds":3000000000},)"
                         R"("status":{"containerStatuses":[{"restartCount":-3000000000}]}})");
  EXPECT_EQ(pod.meta.grace, std::chrono::seconds(std::numeric_limits<int>::max()));
  EXPECT_EQ(pod.container_statuses.at(0).restarts, std::numeric_limits<int>::min());
}

TEST(Codec, RefusesAnObjectOfTooManyMembersAndNamesIt) {
  const auto job = [](size_t members) {
    Json crowd = Json::object();
    for (size_t i = 0; i < members; ++i) crowd[std::to_string(i)] = nullptr;
    return Json({{"metadata", {{"name", "a"}, {"namespace", "b"}, {"resourceVersion", "1"}}},
                 {"spec", {{"template", Json::array({crowd})}}}})
        .dump();
  };
  EXPECT_EQ(decode_object<WholeObject>(job(1000)).meta.name, "a");
  const auto event = decode_event<WholeObject>(R"({"type":"ADDED","object":)" + job(1001) + "}");
  EXPECT_EQ(event.object.meta.key(), "b/a");
  EXPECT_EQ(event.unread, "expected at most 1000 members in each object, found 1001");
}

TEST(Codec, WhatIsMangledIsUnavailable) {
  for (const char* text : {"", "{", "null", "[]", "7", R"({"items":[]})",
                           R"({"items":{},"metadata":{"resourceVersion":"1"}})",
                           R"({"items":[],"metadata":{"resourceVersion":1}})",
                           R"({"metadata":{"resourceVersion":"1"},"items":[{"metadata":)",
                           "{\"metadata\":{\"resourceVersion\":\"\xff\"},\"items\":[]}"}) {
    EXPECT_THROW(decode_list<Pod>(text), Unavailable) << text;
  }
  for (
      const char* line :
      {"", "{}", R"({"type":"ADDED"})", R"({"type":"NEW","object":{}})",
       R"({"type":"ADDED","object":{"metadata":{"name":"p"}}})",
       R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}})",
       R"({"type":"ADDED","object":{"status":{"containerStatuses":[{"restartCount":99999999999}]}}})"}) {
    EXPECT_THROW(decode_event<Pod>(line), Unavailable) << line;
  }
  EXPECT_THROW(decode_list<WholeObject>(nested(5000)), Unavailable);
}

}  // namespace
}  // namespace muster::kube
