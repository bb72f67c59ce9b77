#include "operator/kube/api/client.h"

#include <gmock/gmock.h>

#include <atomic>
#include <set>
#include <thread>

#include "operator/kube/api/event_writer.h"
#include "operator/kube/api/lease.h"
#include "operator/kube/cache/reflector.h"
#include "operator/kube/cluster/parallel.h"
#include "operator/kube/http/http_transport.h"
#include "tests/integration/kube/api_server.h"

namespace muster::integration {

namespace {

using namespace std::chrono_literals;
using namespace kube;
using ::testing::HasSubstr;

Json pod(const std::string& name, const std::string& job = "mnist") {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", name}, {"namespace", "default"}, {"labels", {{"muster.dev/job", job}}}}},
          {"spec", {{"containers", {{{"name", "trainer"}, {"image", "none"}}}}}}};
}

// Without waiting for a kubelet that is not there.
Client::RemoveOptions at_once(const Preconditions& preconditions = {}) {
  Client::RemoveOptions options;
  options.preconditions = preconditions;
  options.grace_seconds = 0;
  return options;
}

std::string version_of(const Json& object) {
  return object.at("metadata").at("resourceVersion");
}

// Polls; what is waited for takes as long as the machine makes it.
void wait_for(const char* what, const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + 2min;
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), until) << what;
    std::this_thread::sleep_for(10ms);
  }
}

// What `call` was refused with.
ApiStatus refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error.status();
  }
  ADD_FAILURE() << "expected a refusal";
  return {};
}

// Lets nothing through while it is closed, as a network that is cut.
class Gate : public Transport {
 public:
  explicit Gate(Transport& transport) : transport_(transport) {}
  Response send(const Request& request) override {
    if (!closed) return transport_.send(request);
    Response response;
    response.error = "the gate is closed";
    return response;
  }
  StreamEnd stream(const Request& request, const OnLine& on_line,
                   const std::stop_token& cancel) override {
    if (!closed) {
      ++watches;
      return transport_.stream(request, on_line, cancel);
    }
    StreamEnd end;
    end.reason = StreamEnd::Reason::lost;
    end.error = "the gate is closed";
    return end;
  }
  std::stop_token down() const override { return transport_.down(); }

  std::atomic<bool> closed = false;
  std::atomic<int> watches = 0;

 private:
  Transport& transport_;
};

class KubeClientTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    initialize_transport();
    server_ = std::make_unique<ApiServer>();
  }
  static void TearDownTestSuite() { server_.reset(); }

  KubeClientTest() {
    for (const Json& object : client_.list(pods(), "default", {})) {
      client_.remove(pods(), {"default", object.at("metadata").at("name")}, at_once());
    }
  }

  static HttpTransport::Settings settings() {
    HttpTransport::Settings settings;
    settings.in_flight = 8;
    settings.silence = 5s;
    return settings;
  }
  static void restart() {
    server_->kill(ApiServer::kServer);
    server_->start(ApiServer::kServer);
    server_->await_ready();
  }
  static Reflector::Settings of_pods() {
    Reflector::Settings settings;
    settings.resource = pods();
    settings.label_selector = "muster.dev/job";
    settings.page = 20;
    settings.longest_pause = 500ms;
    return settings;
  }
  void create(int count, const std::string& prefix) {
    in_parallel(count, 8,
                [&](size_t i) { client_.create(pods(), pod(prefix + std::to_string(i))); });
  }
  std::set<std::string> on_server() const {
    std::set<std::string> names;
    ListOptions options;
    options.label_selector = "muster.dev/job";
    for (const Json& object : client_.list(pods(), "", options)) {
      names.insert("default/" + object.at("metadata").at("name").get<std::string>());
    }
    return names;
  }
  static std::set<std::string> in_view(const Store<Pod>& store) {
    const std::vector<std::string> keys = store.keys();
    return {keys.begin(), keys.end()};
  }

  static std::unique_ptr<ApiServer> server_;
  prometheus::Registry registry_;
  Credentials credentials_{load_kubeconfig(server_->kubeconfig())};
  HttpTransport transport_{credentials_, registry_, settings()};
  const Client client_{transport_};
};
std::unique_ptr<ApiServer> KubeClientTest::server_;

TEST_F(KubeClientTest, WritesWithPreconditions) {
  const ObjectName name{"default", "a"};
  const Json created = client_.create(pods(), pod("a")).json();
  const std::string uid = created.at("metadata").at("uid");
  EXPECT_TRUE(refusal_of([&] { client_.create(pods(), pod("a")); }).already_exists());

  const Json labels = {{"metadata", {{"labels", {{"x", "1"}}}}}};
  const ApiStatus foreign = refusal_of([&] {
    client_.patch(pods(), name, PatchKind::merge, labels, {"another", ""});
  });
  EXPECT_TRUE(foreign.conflict()) << foreign.code << foreign.reason << foreign.message;
  const Json patched =
      client_.patch(pods(), name, PatchKind::merge, labels, {uid, version_of(created)}).json();
  EXPECT_EQ(patched.at("metadata").at("labels").at("x"), "1");
  EXPECT_TRUE(refusal_of([&] {
                client_.patch(pods(), name, PatchKind::merge,
                              {{"metadata", {{"labels", {{"x", "2"}}}}}},
                              {uid, version_of(created)});
              }).conflict());
  EXPECT_TRUE(refusal_of([&] { client_.update(pods(), created); }).conflict());

  const Json remove = Json::array({{{"op", "remove"}, {"path", "/metadata/labels/x"}}});
  EXPECT_TRUE(refusal_of([&] {
                client_.patch(pods(), name, PatchKind::json, remove, {"another", ""});
              }).conflict());
  const Json without = client_.patch(pods(), name, PatchKind::json, remove, {uid, ""}).json();
  EXPECT_FALSE(without.at("metadata").at("labels").contains("x"));

  EXPECT_TRUE(refusal_of([&] {
                client_.remove(pods(), name, at_once({"another", ""}));
              }).conflict());
  EXPECT_TRUE(client_.remove(pods(), name, at_once({uid, ""})));
  EXPECT_FALSE(client_.remove(pods(), name, {}));
  EXPECT_EQ(client_.get(pods(), name), std::nullopt);
}

TEST_F(KubeClientTest, AppliesAndDryRunsAndRefusesUnknownFields) {
  WriteOptions dry;
  dry.dry_run = true;
  EXPECT_EQ(client_.create(pods(), pod("a"), dry).json().at("metadata").at("name"), "a");
  EXPECT_EQ(client_.get(pods(), {"default", "a"}), std::nullopt);

  Json service = {{"apiVersion", "v1"},
                  {"kind", "Service"},
                  {"metadata", {{"name", "mnist"}, {"namespace", "default"}}},
                  {"spec", {{"clusterIP", "None"}, {"selector", {{"a", "b"}}}}}};
  const ObjectName name{"default", "mnist"};
  const Json applied = client_.patch(services(), name, PatchKind::apply, service).json();
  service["spec"]["selector"]["a"] = "c";
  EXPECT_EQ(
      client_.patch(services(), name, PatchKind::apply, service).json().at("spec").at("selector"),
      Json({{"a", "c"}}));
  client_.remove(services(), name, {});

  Json misspelt = pod("a");
  misspelt["spec"]["contianers"] = Json::array();
  WriteOptions strict;
  strict.strict = true;
  const ApiStatus status = refusal_of([&] { client_.create(pods(), misspelt, strict); });
  EXPECT_EQ(status.code, 400);
  EXPECT_THAT(status.message, HasSubstr("contianers"));
  Json invalid = pod("b");
  invalid["spec"]["containers"][0].erase("image");
  EXPECT_THROW(client_.create(pods(), invalid), ApiInvalid);
  Json elsewhere = pod("c");
  elsewhere["metadata"]["namespace"] = "nowhere";
  EXPECT_THROW(client_.create(pods(), elsewhere), ApiUnavailable);
  EXPECT_THROW(client_.get({"nowhere.dev", "v1", "things", "Thing"}, {"default", "x"}),
               ApiUnavailable);
}

TEST_F(KubeClientTest, AViewFollowsTheServerAndKeepsOnlyWhatIsOurs) {
  create(50, "a");
  Json foreign = pod("foreign");
  foreign["metadata"].erase("labels");
  client_.create(pods(), foreign);
  std::atomic<int> added = 0, moved = 0, removed = 0;
  Store<Pod> store("muster.dev/job", [&](const Pod* before, const Pod* after) {
    if (before == nullptr) ++added;
    if (after == nullptr) ++removed;
    if (before && after && before->meta.labels != after->meta.labels) ++moved;
  });
  Reflector reflector(
      transport_, store, of_pods(),
      [](const std::string& trouble, std::chrono::milliseconds) { ADD_FAILURE() << trouble; });
  const std::jthread thread([&](const std::stop_token& stop) { reflector.run(stop); });
  ASSERT_TRUE(reflector.wait_synced({}));
  EXPECT_EQ(in_view(store), on_server());
  EXPECT_EQ(store.size(), 50U);
  client_.create(pods(), pod("b", "other"));
  client_.patch(pods(), {"default", "a0"}, PatchKind::merge,
                {{"metadata", {{"labels", {{"muster.dev/job", "other"}}}}}});
  client_.remove(pods(), {"default", "a1"}, at_once());
  wait_for("the view is the server's", [&] { return removed == 1; });
  EXPECT_EQ(in_view(store), on_server());
  EXPECT_EQ(store.find("default", "mnist").size(), 48U);
  EXPECT_EQ(store.find("default", "other").size(), 2U);
  EXPECT_EQ(added, 51);
  EXPECT_EQ(moved, 1);
}

// Eight connections lie in the pool, and every one of them is dead.
TEST_F(KubeClientTest, CallsAndViewsSurviveARestartOfTheServer) {
  Store<Pod> store;
  Reflector reflector(transport_, store, of_pods(),
                      [](const std::string&, std::chrono::milliseconds) {});
  const std::jthread thread([&](const std::stop_token& stop) { reflector.run(stop); });
  ASSERT_TRUE(reflector.wait_synced({}));
  for (int round = 0; round < 3; ++round) {
    const std::string prefix = "r" + std::to_string(round) + "-";
    create(16, prefix);
    server_->kill(ApiServer::kServer);
    const ApiStatus down = refusal_of([&] { client_.create(pods(), pod(prefix + "down")); });
    EXPECT_EQ(down.code, 0);
    EXPECT_FALSE(down.sent);
    server_->start(ApiServer::kServer);
    server_->await_ready();
    for (int i = 0; i < 8; ++i) client_.create(pods(), pod(prefix + "up" + std::to_string(i)));
    wait_for("the view is the server's", [&] { return in_view(store) == on_server(); });
  }
  EXPECT_EQ(store.size(), 3U * 24);
}

TEST_F(KubeClientTest, AViewWhosePlaceIsForgottenBeginsAgain) {
  Gate gate(transport_);
  std::mutex mutex;
  std::vector<std::string> troubles;
  Store<Pod> store;
  Reflector reflector(gate, store, of_pods(),
                      [&](const std::string& trouble, std::chrono::milliseconds) {
                        const std::lock_guard lock(mutex);
                        troubles.push_back(trouble);
                      });
  create(3, "a");
  const std::jthread thread([&](const std::stop_token& stop) { reflector.run(stop); });
  ASSERT_TRUE(reflector.wait_synced({}));
  wait_for("a watch", [&] { return gate.watches > 0; });
  gate.closed = true;
  server_->kill(ApiServer::kServer);
  server_->start(ApiServer::kServer);
  server_->await_ready();
  create(3, "b");
  client_.remove(pods(), {"default", "a0"}, at_once());
  server_->compact();
  restart();  // it remembers events itself
  gate.closed = false;
  wait_for("the view is the server's", [&] { return in_view(store) == on_server(); });
  EXPECT_EQ(store.size(), 5U);
  const std::lock_guard lock(mutex);
  EXPECT_THAT(troubles, ::testing::Contains(HasSubstr("410 Expired")));
}

TEST_F(KubeClientTest, AServerThatNoLongerAnswersIsNoticed) {
  std::mutex mutex;
  std::vector<std::string> troubles;
  Store<Pod> store;
  Reflector reflector(transport_, store, of_pods(),
                      [&](const std::string& trouble, std::chrono::milliseconds) {
                        const std::lock_guard lock(mutex);
                        troubles.push_back(trouble);
                      });
  const std::jthread thread([&](const std::stop_token& stop) { reflector.run(stop); });
  ASSERT_TRUE(reflector.wait_synced({}));
  client_.create(pods(), pod("before"));
  wait_for("the watch has begun", [&] { return store.get("default/before").has_value(); });
  server_->signal(ApiServer::kServer, SIGSTOP);
  const Client hurried(transport_, {.deadline = 500ms});
  EXPECT_EQ(refusal_of([&] { hurried.create(pods(), pod("a")); }).code, 0);
  wait_for("the watch is given up", [&] {
    const std::lock_guard lock(mutex);
    return !troubles.empty();
  });
  server_->signal(ApiServer::kServer, SIGCONT);
  client_.create(pods(), pod("b"));
  wait_for("the view is the server's", [&] { return in_view(store) == on_server(); });
  EXPECT_TRUE(store.get("default/b"));
  EXPECT_THAT(troubles[0], HasSubstr("nothing from"));
}

TEST_F(KubeClientTest, WhoIsNotKnownIsToldSo) {
  Config config = credentials_.config();
  config.certificate = config.key = {};
  config.token.text = "nobody's";
  Credentials nobody(config);
  HttpTransport transport(nobody, registry_, settings());
  EXPECT_EQ(refusal_of([&] { Client(transport).create(pods(), pod("a")); }).code, 401);
}

TEST_F(KubeClientTest, OneLeadsAndTheNextFollowsAtOnce) {
  LeaseSettings lease;
  lease.name_space = "default";
  lease.every = 100ms;
  std::atomic<int> leaders = 0;
  const auto tell = [&](bool leads) {
    leaders += leads ? 1 : -1;
    EXPECT_LE(leaders, 1);
  };
  lease.identity = "first";
  LeaderElection first(transport_, lease, tell);
  lease.identity = "second";
  LeaderElection second(transport_, lease, tell);
  std::jthread one([&](const std::stop_token& stop) { first.run(stop); });
  wait_for("the first leads", [&] { return first.leads(); });
  const std::jthread two([&](const std::stop_token& stop) { second.run(stop); });
  wait_for("the second knows", [&] { return second.leader() == "first"; });
  restart();
  wait_for("the first leads again", [&] { return first.leads(); });
  EXPECT_FALSE(second.leads());
  one.request_stop();
  one.join();
  wait_for("the second leads", [&] { return second.leads(); });
  const auto object = client_.get(leases(), {"default", lease.name});
  ASSERT_TRUE(object);
  EXPECT_EQ(to_lease_record(*object).holder, "second");
}

TEST_F(KubeClientTest, EventsAreOneObjectWithACount) {
  const Json about = client_.create(pods(), pod("a")).json();
  const EventSubject subject{"v1", "Pod", "default", "a", about.at("metadata").at("uid")};
  EventLimits limits;
  limits.again = 0s;
  for (int process = 0; process < 2; ++process) {
    EventWriter writer(transport_, "muster-operator", limits);
    std::jthread thread([&](const std::stop_token& stop) { writer.run(stop); });
    for (int i = 0; i < 3; ++i) writer.emit(subject, {true, "Failed", "it failed \xff"});
  }
  ListOptions options;
  options.field_selector = "involvedObject.name=a,reason=Failed";
  const std::vector<Json> found = client_.list(events(), "default", options);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].at("count"), 6);
  EXPECT_EQ(found[0].at("type"), "Warning");
}

TEST_F(KubeClientTest, ManyWritesAtATimeAreAllCounted) {
  create(200, "many");
  EXPECT_EQ(on_server().size(), 200U);
  double created = 0;
  for (const auto& family : registry_.Collect()) {
    for (const auto& metric : family.metric) {
      const auto has = [&](const char* name, const char* value) {
        return std::any_of(metric.label.begin(), metric.label.end(), [&](const auto& label) {
          return label.name == name && label.value == value;
        });
      };
      if (has("code", "201") && has("method", "POST")) created += metric.counter.value;
    }
  }
  EXPECT_EQ(created, 200);
}

}  // namespace

}  // namespace muster::integration
