#include "operator/kube/events.h"

#include <gmock/gmock.h>

#include <sstream>
#include <thread>

#include "common/json.h"
#include "common/log.h"
#include "tests/unit/operator/kube/fake_transport.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

const EventSubject kJob{"muster.dev/v1alpha1", "TrainingJob", "team", "mnist", "u1"};

EventText text(const std::string& message) {
  return {false, "ReplicaFailed", message};
}

TEST(EventLedger, WritesTheFirstAtOnceAndRepetitionsTogether) {
  EventLedger ledger;
  const Time start(1000s);
  EXPECT_EQ(ledger.take(start), std::nullopt);
  EXPECT_EQ(ledger.next(), std::nullopt);
  ledger.record(kJob, text("worker 0"), start);
  const auto first = ledger.take(start);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->unwritten, 1);
  EXPECT_TRUE(first->first_time);
  for (int i = 1; i <= 5; ++i) ledger.record(kJob, text("worker 0"), start + i * 1s);
  EXPECT_EQ(ledger.take(start + 9s), std::nullopt);
  EXPECT_EQ(ledger.next(), start + 10s);
  const auto again = ledger.take(start + 10s);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->unwritten, 5);
  EXPECT_FALSE(again->first_time);
  EXPECT_EQ(again->first, start);
  EXPECT_EQ(again->last, start + 5s);
  EXPECT_EQ(again->name, first->name);
  EXPECT_EQ(ledger.next(), std::nullopt);
}

TEST(EventLedger, NamesAreOfTheThingAndTheSameInEveryProcess) {
  const auto name_of = [](const EventSubject& subject, const EventText& text) {
    EventLedger ledger;
    ledger.record(subject, text, Time(1s));
    return ledger.take(Time(1s))->name;
  };
  const std::string name = name_of(kJob, text("a"));
  EXPECT_EQ(name, name_of(kJob, text("a")));
  EXPECT_THAT(name, ::testing::MatchesRegex("mnist\\.[0-9a-f]{16}"));
  EXPECT_NE(name, name_of(kJob, text("b")));
  EXPECT_NE(name, name_of(kJob, {true, "ReplicaFailed", "a"}));
  EXPECT_NE(name, name_of(kJob, {false, "ReplicaFaile", "da"}));
  EventSubject recreated = kJob;
  recreated.uid = "u2";
  EXPECT_NE(name, name_of(recreated, text("a")));
}

TEST(EventLedger, CutsLongMessagesInTheirMiddle) {
  EventLedger ledger;
  ledger.record(kJob, text("what: " + std::string(1024, 'x') + " the cause"), Time(1s));
  const std::string cut = ledger.take(Time(1s))->text.message;
  EXPECT_EQ(cut.size(), 1024U);
  EXPECT_THAT(
      cut, ::testing::AllOf(::testing::StartsWith("what: x"), ::testing::EndsWith("x the cause")));
  ledger.record(kJob, text(std::string(1024, 'y')), Time(1s));
  EXPECT_EQ(ledger.take(Time(1s))->text.message.size(), 1024U);
}

TEST(EventLedger, KeepsToItsRate) {
  EventLimits limits;
  limits.burst = 3;
  limits.per_second = 2;
  EventLedger ledger(limits);
  for (int i = 0; i < 10; ++i) ledger.record(kJob, text(std::to_string(i)), Time(10s));
  const auto written = [&](Time now) {
    int count = 0;
    while (ledger.take(now)) ++count;
    return count;
  };
  EXPECT_EQ(written(Time(10s)), 3);
  EXPECT_EQ(ledger.next(), Time(10'500ms));
  EXPECT_EQ(written(Time(10'500ms)), 1);
  EXPECT_EQ(written(Time(11'500ms)), 2);
  EXPECT_EQ(written(Time(100s)), 3);
}

TEST(EventLedger, WhatWaitsAndWhatIsRememberedHasALimit) {
  EventLimits limits;
  limits.waiting = 2;
  limits.remembered = 3;
  using Recorded = EventLedger::Recorded;
  EventLedger ledger(limits);
  EXPECT_EQ(ledger.record(kJob, text("a"), Time(1s)), Recorded::waits);
  EXPECT_EQ(ledger.record(kJob, text("b"), Time(2s)), Recorded::waits);
  EXPECT_EQ(ledger.record(kJob, text("c"), Time(3s)), Recorded::dropped);
  EXPECT_EQ(ledger.record(kJob, text("a"), Time(3s)), Recorded::counted);  // it waits already
  EXPECT_TRUE(ledger.take(Time(3s)));
  EXPECT_TRUE(ledger.take(Time(3s)));
  EXPECT_EQ(ledger.record(kJob, text("c"), Time(4s)), Recorded::waits);
  EXPECT_TRUE(ledger.take(Time(4s)));
  EXPECT_EQ(ledger.record(kJob, text("d"), Time(5s)),
            Recorded::waits);  // b has not happened for longest
  EXPECT_TRUE(ledger.take(Time(5s)));
  EXPECT_EQ(ledger.record(kJob, text("b"), Time(6s)), Recorded::waits);
  EXPECT_TRUE(ledger.take(Time(6s))->first_time);
}

TEST(EventLedger, WhatFailedComesAgainAndNotForEver) {
  EventLedger ledger;
  ledger.record(kJob, text("a"), Time(0s));
  auto write = ledger.take(Time(0s));
  ledger.record(kJob, text("a"), Time(1s));
  ledger.failed(*write, Time(2s));
  write = ledger.take(Time(60s));
  ASSERT_TRUE(write);
  EXPECT_EQ(write->unwritten, 2);
  EXPECT_TRUE(write->first_time);
  ledger.failed(*write, Time(60s));
  write = ledger.take(Time(120s));
  ASSERT_TRUE(write);
  ledger.failed(*write, Time(120s));
  EXPECT_EQ(ledger.take(Time(600s)), std::nullopt);
}

// Event objects of a namespace, by name.
class EventServer {
 public:
  Response answer_to(const Request& request) {
    const std::string name = request.path.substr(request.path.rfind('/') + 1);
    if (request.method == Method::post) {
      const Json body = Json::parse(request.body);
      const std::string key = body["metadata"]["name"];
      if (objects.contains(key)) return refusal(409, "AlreadyExists", "there");
      objects[key] = body;
      return answer(201, body.dump());
    }
    if (!objects.contains(name)) return refusal(404, "NotFound", "none");
    if (request.method == Method::patch) objects[name].merge_patch(Json::parse(request.body));
    return answer(200, objects[name].dump());
  }
  std::map<std::string, Json> objects;
};

TEST(EventWriter, WritesOneObjectForEachThingAndCounts) {
  EventServer server;
  FakeTransport transport([&](const Request& request) { return server.answer_to(request); });
  EventLimits limits;
  limits.again = 0s;
  for (int process = 0; process < 2; ++process) {
    EventWriter writer(transport, "muster-operator", limits);
    std::jthread thread([&](const std::stop_token& stop) { writer.run(stop); });
    writer.emit(kJob, text("a"));
    writer.emit(kJob, text("a"));
    writer.emit(kJob, {true, "JobFailed", "b"});
    thread.request_stop();
    thread.join();
    EXPECT_EQ(writer.dropped(), 0U);
  }
  ASSERT_EQ(server.objects.size(), 2U);
  for (const auto& [name, object] : server.objects) {
    EXPECT_EQ(object["count"], object["type"] == "Warning" ? 2 : 4);
    EXPECT_EQ(object["involvedObject"]["uid"], "u1");
    EXPECT_EQ(object["metadata"]["namespace"], "team");
    EXPECT_EQ(object["source"]["component"], "muster-operator");
  }
}

TEST(EventWriter, LogsWhatAJobSaysAndARepetitionNotBeforeTheNextWrite) {
  EventServer server;
  FakeTransport transport([&](const Request& request) { return server.answer_to(request); });
  EventWriter writer(transport, "muster-operator");
  testing::internal::CaptureStderr();
  log::initialize("test");
  for (int i = 0; i < 5; ++i) writer.emit(kJob, {true, "ReplicaFailed", "worker-0 ended"});
  writer.emit(kJob, {false, "Started", "the job starts"});
  std::jthread thread([&](const std::stop_token& stop) { writer.run(stop); });
  while (transport.requests().size() < 2) std::this_thread::sleep_for(1ms);
  thread.request_stop();
  thread.join();
  for (int i = 0; i < 5; ++i) writer.emit(kJob, {true, "ReplicaFailed", "worker-0 ended"});
  std::istringstream log(testing::internal::GetCapturedStderr());
  std::vector<std::string> said;
  for (std::string text; std::getline(log, text);) {
    const Json line = Json::parse(text);
    EXPECT_EQ(line["level"], "info");
    EXPECT_EQ(line["job"], "team/mnist");
    said.push_back(line["reason"].get<std::string>() + ": " + line["message"].get<std::string>());
  }
  EXPECT_THAT(said, ElementsAre("ReplicaFailed: worker-0 ended", "Started: the job starts",
                                "ReplicaFailed: worker-0 ended"));
}

TEST(EventWriter, MakesAnObjectAnewThatHasGone) {
  EventServer server;
  FakeTransport transport([&](const Request& request) { return server.answer_to(request); });
  EventLimits limits;
  limits.again = 0s;
  EventWriter writer(transport, "muster-operator", limits);
  std::jthread thread([&](const std::stop_token& stop) { writer.run(stop); });
  const auto wait_for = [&](size_t requests) {
    while (transport.requests().size() < requests) std::this_thread::sleep_for(1ms);
  };
  writer.emit(kJob, text("a"));
  wait_for(1);
  thread.request_stop();
  thread.join();
  server.objects.clear();
  thread = std::jthread([&](const std::stop_token& stop) { writer.run(stop); });
  writer.emit(kJob, text("a"));
  thread.request_stop();
  thread.join();
  ASSERT_EQ(server.objects.size(), 1U);
  EXPECT_EQ(server.objects.begin()->second["count"], 1);
}

TEST(EventWriter, AServerThatRefusesIsNotAskedForEver) {
  FakeTransport transport(
      [](const Request&) { return refusal(403, "Forbidden", "namespace is terminating"); });
  EventLimits limits;
  limits.again = 0s;
  EventWriter writer(transport, "muster-operator", limits);
  std::jthread thread([&](const std::stop_token& stop) { writer.run(stop); });
  writer.emit(kJob, text("a"));
  while (transport.requests().size() < 3) std::this_thread::sleep_for(1ms);
  thread.request_stop();
  thread.join();
  EXPECT_EQ(transport.requests().size(), 3U);
}

}  // namespace
}  // namespace muster::kube
