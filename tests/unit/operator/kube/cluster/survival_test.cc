#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "common/documents/json.h"
#include "tests/unit/operator/kube/cluster/kube_cluster_fixture.h"
#include "tests/unit/operator/kube/cluster/kube_world.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;

// Of no kind that anything would catch.
struct Killed {};

// A job's life in steps, the same however often the operator is killed or replaced: it starts,
// loses a worker, succeeds, and its replicas are stopped.
class Life {
 public:
  KubeWorld world;

  struct Circumstances {
    bool beside_others;  // then its first status is put off, and its pods are made before
    size_t pods_at_a_time;
    bool trains = false;    // then it has a NetworkPolicy and a Secret too
    bool of_tfjob = false;  // then attempts of a replica share their name, and each a Service
  };
  explicit Life(const Circumstances& circumstances)
      : world(circumstances.pods_at_a_time),
        others_(circumstances.beside_others ? 3 : 0),
        services_(others_ + (circumstances.of_tfjob ? 4 : 1)) {
    const auto step = [this](std::function<void()> what) { steps_.push_back(std::move(what)); };
    step([this, circumstances] {
      for (int i = 0; i < others_; ++i) world.submit("before-" + std::to_string(i));
      world.submit("mnist", circumstances.trains ? training() : Json::object());
      if (!circumstances.of_tfjob) return;
      Json job = world.job();
      job["metadata"]["ownerReferences"] =
          Json::parse(R"([{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist",
                           "uid": "t", "controller": true}])");
      world.server.put(job);
    });
    step([this] { world.run_all(); });
    step([this] { world.server.end_pod(world.pod("worker-0"), 1); });
    step([this] { world.run_all(); });
    step([this] { world.server.end_pod(world.pod("chief-0"), 0); });
    step([this] { world.server.end_pod(world.pod("evaluator-0"), 0); });
    for (int i = 0; i < 5; ++i) step([this] { world.server.end_leaving_pods(); });
  }

  // After each step, when the operator has done what it can.
  std::function<void()> rest;

  void live() {
    while (next_ < steps_.size()) {
      steps_[next_++]();
      go_on();
      if (rest) rest();
    }
    for (int i = 0; i < 3; ++i) {
      world.server.end_leaving_pods();
      go_on();
    }
  }

  void check(const std::string& when) {
    EXPECT_EQ(world.condition("Succeeded"), "True ChiefSucceeded") << when;
    EXPECT_EQ(world.condition("Finished"), "True ChiefSucceeded") << when;
    EXPECT_EQ(world.job()["status"]["restarts"], 1) << when;
    EXPECT_EQ(world.server.objects("services").size(), static_cast<size_t>(services_)) << when;
    const size_t trainings = world.job()["spec"].contains("training") ? 1 : 0;
    EXPECT_EQ(world.server.objects("networkpolicies").size(), trainings) << when;
    EXPECT_EQ(world.server.objects("secrets").size(), trainings) << when;
    for (const Json& pod : world.server.objects("pods")) {
      const std::string name = pod["metadata"]["name"];
      if (!name.starts_with("mnist")) continue;
      EXPECT_TRUE(member(pod["metadata"], "finalizers").empty()) << name << ", " << when;
      const std::string phase = pod["status"]["phase"];
      EXPECT_TRUE(phase == "Succeeded" || phase == "Failed") << name << " lives, " << when;
    }
  }

  std::string story() const {
    std::string text;
    for (const std::string& call : world.server.calls()) text += "\n  " + call;
    return text;
  }

 private:
  void go_on() {
    for (;;) {
      try {
        return world.run_for(2s);
      } catch (const Killed&) {
        world.restart_operator();
      }
    }
  }

  const int others_, services_;
  std::vector<std::function<void()>> steps_;
  size_t next_ = 0;
};

class Survival : public testing::TestWithParam<Life::Circumstances> {};
INSTANTIATE_TEST_SUITE_P(Alone, Survival, testing::Values(Life::Circumstances{false, 1}));
INSTANTIATE_TEST_SUITE_P(BesideOthers, Survival, testing::Values(Life::Circumstances{true, 1}));
INSTANTIATE_TEST_SUITE_P(OfATraining, Survival,
                         testing::Values(Life::Circumstances{false, 1, true}));
INSTANTIATE_TEST_SUITE_P(OfATfJob, Survival,
                         testing::Values(Life::Circumstances{false, 1, false, true}));
INSTANTIATE_TEST_SUITE_P(SeveralPodsAtATime, Survival,
                         testing::Values(Life::Circumstances{false, 4}));

TEST_P(Survival, OfAnOperatorThatIsKilledBeforeOrAfterAnyCall) {
  for (const bool done : {false, true}) {
    for (int call = 1;; ++call) {
      Life life(GetParam());
      std::atomic<int> left = call;
      const auto kill = [&] {
        if (--left == 0) throw Killed();
      };
      if (done) {
        life.world.server.loses_answer = [&](const Request&) { return kill(), false; };
      } else {
        life.world.server.intercept = [&](const Request&) { return kill(), std::nullopt; };
      }
      life.live();
      life.check("killed " + std::string(done ? "after" : "before") + " call " +
                 std::to_string(call) + life.story());
      if (left > 0 || testing::Test::HasFailure()) {
        EXPECT_GT(call, 15) << "a life has more calls";
        break;
      }
    }
  }
}

TEST_P(Survival, OfAnyCallThatFails) {
  for (const int status : {0, 409, 429, 500}) {
    for (int call = 1;; ++call) {
      Life life(GetParam());
      std::atomic<int> left = call;
      life.world.server.intercept = [&](const Request&) -> std::optional<Response> {
        if (--left != 0) return std::nullopt;
        Response response;
        response.status = status;
        response.body = Json{{"kind", "Status"}, {"code", status}, {"reason", "Conflict"}}.dump();
        return response;
      };
      life.live();
      life.check("call " + std::to_string(call) + " failed with " + std::to_string(status) +
                 life.story());
      if (left > 0 || testing::Test::HasFailure()) break;
    }
  }
}

TEST_P(Survival, OfAnyAnswerThatIsLost) {
  for (int call = 1;; ++call) {
    Life life(GetParam());
    std::atomic<int> left = call;
    life.world.server.loses_answer = [&](const Request&) { return --left == 0; };
    life.live();
    life.check("the answer to call " + std::to_string(call) + " was lost" + life.story());
    if (left > 0 || testing::Test::HasFailure()) break;
  }
}

// One call at a time: who leads changes between two of them.
class LateSurvival : public Survival {};
INSTANTIATE_TEST_SUITE_P(Alone, LateSurvival, testing::Values(Life::Circumstances{false, 1}));
INSTANTIATE_TEST_SUITE_P(BesideOthers, LateSurvival, testing::Values(Life::Circumstances{true, 1}));
INSTANTIATE_TEST_SUITE_P(OfATfJob, LateSurvival,
                         testing::Values(Life::Circumstances{false, 1, false, true}));

// A leader whose time is up before one of its calls, and that leads again later.
TEST_P(LateSurvival, OfALeadershipThatIsLostWithoutAFurtherWrite) {
  for (int call = 1;; ++call) {
    Life life(GetParam());
    int left = call;
    std::string written;
    life.world.server.intercept = [&](const Request& request) -> std::optional<Response> {
      if (!life.world.leads && request.method != Method::get) {
        written += std::string(" ") + name_of(request.method) + " " + request.path;
      }
      if (--left == 0) life.world.leads = false;
      return std::nullopt;
    };
    life.rest = [&] {
      if (std::exchange(life.world.leads, true)) return;
      life.world.run_for(10s);
    };
    life.live();
    EXPECT_EQ(written, "") << "after call " << call << life.story();
    life.check("it did not lead after call " + std::to_string(call) + life.story());
    if (left > 0 || testing::Test::HasFailure()) break;
  }
}

// A leader that sleeps before one of its calls, while another does all that is to be done, and then
// carries out what it had in mind.
TEST_P(LateSurvival, OfALeaderThatWakesUpLate) {
  for (int call = 1;; ++call) {
    Life life(GetParam());
    int left = call;
    life.world.server.intercept = [&](const Request&) -> std::optional<Response> {
      if (--left != 0) return std::nullopt;
      life.world.take_over();
      life.live();
      return std::nullopt;
    };
    life.live();
    life.check("asleep before call " + std::to_string(call) + life.story());
    if (left > 0 || testing::Test::HasFailure()) break;
  }
}

// Four jobs at once: the last one's status waits.
TEST(FirstStatus, IsNotNeededByWhoTakesOver) {
  for (const bool fails : {false, true}) {
    KubeWorld world;
    for (int i = 0; i < 3; ++i) world.submit("before-" + std::to_string(i));
    world.submit();
    world.settle();
    ASSERT_EQ(world.condition("Accepted"), "") << "its status was not put off";
    const std::string pods = world.pods();
    if (fails) world.server.end_pod(world.pod("worker-0"), 1);
    world.restart_operator();
    world.run_for(5s);
    EXPECT_EQ(world.condition("Accepted"), "True Valid");
    EXPECT_EQ(world.job()["status"]["restarts"], fails ? 1 : 0);
    if (!fails) {
      EXPECT_EQ(world.pods(), pods);
    }
  }
}

}  // namespace
}  // namespace muster::kube
