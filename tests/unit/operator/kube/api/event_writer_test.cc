#include "operator/kube/api/event_writer.h"

#include <gmock/gmock.h>

#include <sstream>
#include <thread>

#include "common/documents/json.h"
#include "common/program/log.h"
#include "tests/unit/operator/kube/fake_transport.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

const EventSubject kSubject{"muster.dev/v1alpha1", "TrainingJob", "team", "mnist", "u1"};

EventText event_text(const std::string& message) {
  return {false, "ReplicaFailed", message};
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
    writer.emit(kSubject, event_text("a"));
    writer.emit(kSubject, event_text("a"));
    writer.emit(kSubject, {true, "JobFailed", "b"});
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
  for (int i = 0; i < 5; ++i) writer.emit(kSubject, {true, "ReplicaFailed", "worker-0 ended"});
  writer.emit(kSubject, {false, "Started", "the job starts"});
  std::jthread thread([&](const std::stop_token& stop) { writer.run(stop); });
  while (transport.requests().size() < 2) std::this_thread::sleep_for(1ms);
  thread.request_stop();
  thread.join();
  for (int i = 0; i < 5; ++i) writer.emit(kSubject, {true, "ReplicaFailed", "worker-0 ended"});
  std::istringstream log(testing::internal::GetCapturedStderr());
  std::vector<std::string> said;
  for (std::string text; std::getline(log, text);) {
    const Json line = Json::parse(text);
    EXPECT_EQ(line["level"], "info");
    EXPECT_EQ(line["job"], "team/mnist");
    said.push_back(line["reason"].get<std::string>() + " | " + line["message"].get<std::string>());
  }
  EXPECT_THAT(said, ElementsAre("ReplicaFailed | team/mnist: ReplicaFailed: worker-0 ended",
                                "Started | team/mnist: Started: the job starts",
                                "ReplicaFailed | team/mnist: ReplicaFailed: worker-0 ended"));
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
  writer.emit(kSubject, event_text("a"));
  wait_for(1);
  thread.request_stop();
  thread.join();
  server.objects.clear();
  thread = std::jthread([&](const std::stop_token& stop) { writer.run(stop); });
  writer.emit(kSubject, event_text("a"));
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
  writer.emit(kSubject, event_text("a"));
  while (transport.requests().size() < 3) std::this_thread::sleep_for(1ms);
  thread.request_stop();
  thread.join();
  EXPECT_EQ(transport.requests().size(), 3U);
}

}  // namespace
}  // namespace muster::kube
