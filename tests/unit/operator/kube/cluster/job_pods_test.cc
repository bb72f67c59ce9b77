#include "operator/kube/cluster/job_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "tests/unit/operator/kube/cluster/kube_cluster_fixture.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::IsEmpty;

using JobPodsTest = KubeClusterTest;

TEST_F(JobPodsTest, CreatesNothingTwiceWhileTheViewLags) {
  world_.tells_of_pods = false;
  world_.submit();
  world_.settle();
  EXPECT_EQ(server().count("POST pods"), 4);
  Json job = world_.job();
  job["metadata"]["generation"] = 2;
  server().put(job);
  world_.settle();
  EXPECT_EQ(server().count("POST pods"), 4);
}

TEST_F(JobPodsTest, HandsEachRequestForACheckpointOnToTheLeaderOnce) {
  world_.submit("mnist", training());
  world_.settle();
  world_.run_all();
  world_.run_for(5s);
  const auto annotate = [&](const std::string& request) {
    Json job = world_.job();
    job["metadata"]["annotations"]["muster.dev/checkpoint"] = request;
    server().put(job);
    server().forget_calls();
    world_.settle();
  };
  const auto annotation_of = [&](const std::string& replica) {
    const Json pod = server().object("pods", world_.pod(replica));
    return string_or(member(pod["metadata"], "annotations"), "muster.dev/checkpoint", "");
  };
  annotate("first");
  EXPECT_EQ(annotation_of("chief-0"), "first");
  EXPECT_EQ(annotation_of("worker-0"), "");
  EXPECT_EQ(server().count("PATCH pods"), 1);
  annotate("second");
  EXPECT_EQ(annotation_of("chief-0"), "second");
  world_.run_for(60s);
  world_.restart_operator();
  world_.run_for(60s);
  EXPECT_EQ(server().count("PATCH pods"), 1) << "not again while nothing changes";
  server().end_pod(world_.pod("chief-0"), 1);
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "chief-0.1 evaluator-0.0 ps-0.0 worker-0.0");
  EXPECT_EQ(annotation_of("chief-0"), "second") << "its successor has it from the beginning";
}

TEST_F(JobPodsTest, GoesOnWithAJobWhoseRequestForACheckpointCannotBeHandedOn) {
  world_.submit("mnist", training());
  world_.settle();
  world_.run_all();
  world_.run_for(5s);
  Json job = world_.job();
  job["metadata"]["annotations"]["muster.dev/checkpoint"] = "now";
  server().put(job);
  refuse_all(Method::patch, world_.pod("chief-0"), refusal(403, "Forbidden", "not that pod"));
  world_.settle();
  EXPECT_THAT(world_.events, Contains("mnist: CheckpointNotRequested"));
  EXPECT_THAT(world_.troubles, IsEmpty());
  server().end_pod(world_.pod("worker-0"), 1);
  world_.run_for(5s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.1");
  server().intercept = {};
  world_.run_for(60s);
  const Json chief = server().object("pods", world_.pod("chief-0"));
  EXPECT_EQ(chief["metadata"]["annotations"]["muster.dev/checkpoint"], "now");
}

TEST_F(JobPodsTest, LetsPodsGoOnceTheyAreCounted) {
  start();
  server().end_pod(world_.pod("worker-0"), 0);
  EXPECT_TRUE(is_tracked(server().object("pods", world_.pod("worker-0"))));
  world_.settle();
  EXPECT_FALSE(is_tracked(server().object("pods", world_.pod("worker-0"))));
  EXPECT_TRUE(is_tracked(server().object("pods", world_.pod("chief-0"))));
}

TEST_F(JobPodsTest, TracksAPodForAsLongAsItsEndCannotBeCounted) {
  start();
  server().end_pod(world_.pod("worker-0"), 0);
  refuse(Method::put, "/status", refusal(500, "InternalError", "etcd is away"), 1);
  world_.settle();
  EXPECT_TRUE(is_tracked(server().object("pods", world_.pod("worker-0"))));
  world_.run_for(1s);
  EXPECT_FALSE(is_tracked(server().object("pods", world_.pod("worker-0"))));
}

TEST_F(JobPodsTest, TellsAndDoesWhatIsWrittenThoughAPodCannotBeLetGo) {
  start();
  world_.events.clear();
  const std::string pod = world_.pod("worker-0");
  server().end_pod(pod, 0);
  server().end_pod(world_.pod("chief-0"), 0);
  refuse(Method::patch, "/pods/", refusal(500, "InternalError", "etcd is away"), 1);
  world_.settle();
  EXPECT_THAT(world_.events, Contains("mnist: ChiefSucceeded"));
  EXPECT_FALSE(is_tracked(server().object("pods", pod))) << "the pass after it lets go";
  EXPECT_THAT(world_.troubles, IsEmpty());
}

TEST_F(JobPodsTest, TakesAPodThatIsThereAlreadyForItsOwn) {
  int lost = 1;
  server().loses_answer = [&](const Request& request) {
    return request.method == Method::post && request.path.ends_with("/pods") &&
           query(request, "dryRun").empty() && lost-- > 0;
  };
  world_.submit();
  world_.run_for(2s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  EXPECT_EQ(world_.condition("Accepted"), "True Valid");
}

TEST_F(JobPodsTest, NeverAdoptsAForeignPod) {
  world_.submit();
  world_.settle();
  const std::string name = world_.pod("worker-0");
  KubeWorld other;
  other.server.put({{"kind", "Pod"},
                    {"metadata", {{"name", name}, {"namespace", "lab"}, {"uid", "foreign"}}},
                    {"spec", {{"hostname", "x"}}},
                    {"status", {{"phase", "Running"}}}});
  other.server.put(world_.job());  // of the same UID, so that the name is the same
  Json job = other.job();
  job.erase("status");
  other.server.put(job);
  other.restart_operator();
  other.run_for(5s);
  EXPECT_EQ(other.condition("Accepted"), "False NameConflict");
  EXPECT_FALSE(other.server.object("pods", name)["metadata"].contains("labels"));
  other.server.remove("pods", name);
  other.run_for(20s);
  EXPECT_EQ(other.condition("Accepted"), "True Valid");
  EXPECT_EQ(other.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
}

TEST_F(JobPodsTest, RemovesOnlyThePodThatItLookedAt) {
  start();
  world_.tells_of_pods = false;
  server().set_status(world_.pod("worker-0"), {{"message", "changed meanwhile"}});
  server().put([&] {
    Json job = world_.job();
    job["spec"]["suspend"] = true;
    job["metadata"]["generation"] = 2;
    return job;
  }());
  world_.settle();
  EXPECT_FALSE(
      server().object("pods", world_.pod("worker-0"))["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(world_.troubles.size(), 1u);
  world_.run_for(1s);
  EXPECT_TRUE(
      server().object("pods", world_.pod("worker-0"))["metadata"].contains("deletionTimestamp"))
      << "it has been looked at anew, though the view lags";
}

TEST_F(JobPodsTest, APodWhoseNameIsAnothersNowHasGone) {
  start();
  world_.tells_of_pods = false;
  const std::string name = world_.pod("worker-0");
  Json other = server().object("pods", name);
  other["metadata"]["uid"] = "another";
  server().put(other);
  Json job = world_.job();
  job["spec"]["suspend"] = true;
  job["metadata"]["generation"] = 2;
  server().put(job);
  world_.run_for(2s);
  EXPECT_THAT(world_.troubles, IsEmpty());
  EXPECT_GE(server().count("DELETE pods"), 3) << "chief, worker and evaluator are asked to leave";
  EXPECT_FALSE(server().object("pods", name)["metadata"].contains("deletionTimestamp"));
  EXPECT_TRUE(is_tracked(server().object("pods", name)));
}

TEST_F(JobPodsTest, LetsGoWhatADeletedJobLeaves) {
  start();
  server().remove("trainingjobs", "mnist");
  world_.settle();
  server().end_leaving_pods();
  world_.settle();
  EXPECT_THAT(server().objects("pods"), IsEmpty());
}

TEST_F(JobPodsTest, LetsGoWhatAJobThatIsBeingDeletedHas) {
  start();
  Json job = world_.job();
  job["metadata"]["finalizers"] = {"foregroundDeletion"};
  server().put(job);
  server().remove("trainingjobs", "mnist");
  world_.settle();
  for (const Json& pod : server().objects("pods")) EXPECT_FALSE(is_tracked(pod));
}

TEST_F(JobPodsTest, AViewWithoutTheJobIsNoReasonToLetItsPodsGo) {
  start();
  world_.cluster().jobs().begin_list();
  world_.cluster().jobs().add_page(R"({"metadata": {"resourceVersion": "1"}, "items": []})");
  world_.cluster().jobs().end_list();
  EXPECT_EQ(world_.cluster().get("lab/mnist"), std::nullopt);
  for (const Json& pod : server().objects("pods")) EXPECT_TRUE(is_tracked(pod));
}

TEST_F(JobPodsTest, NothingRunsAgainWhosePodsWereCollectedWhileItWasAway) {
  start();
  server().end_pod(world_.pod("worker-0"), 0);
  server().end_pod(world_.pod("chief-0"), 0);
  server().remove("pods", world_.pod("worker-0"));
  server().remove("pods", world_.pod("chief-0"));
  world_.restart_operator();
  world_.run_for(2s);
  EXPECT_EQ(world_.condition("SuccessCriteriaMet"), "True ChiefSucceeded");
  EXPECT_EQ(server().count("POST pods"), 4);
}

TEST_F(JobPodsTest, AdoptsWhatRunsWithoutTouchingIt) {
  start();
  server().forget_calls();
  world_.restart_operator();
  world_.run_for(10s);
  EXPECT_THAT(server().calls(), IsEmpty());
}

TEST_F(JobPodsTest, StopsWhatGoesOnBesideAReplicaThatHasEnded) {
  start();
  const std::string pod = world_.pod("worker-0");
  server().set_status(pod, Json::parse(R"({"phase": "Running", "containerStatuses": [
             {"name": "log", "state": {"running": {}}},
             {"name": "tensorflow", "state": {"terminated": {"exitCode": 0}}}]})"));
  world_.settle();
  EXPECT_TRUE(server().object("pods", pod)["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(world_.job()["status"]["replicaStatuses"]["worker"]["succeeded"], 1);
}

bool creates_pod(const Request& request) {
  return request.method == Method::post && request.path.ends_with("/pods") &&
         query(request, "dryRun").empty();
}

TEST(JobPods, CreatesPodsSeveralAtATimeAndEachOnce) {
  KubeWorld world(4);
  std::mutex mutex;
  std::condition_variable changed;
  int begun = 0;
  // The first goes alone, and the next two wait for each other.
  world.server.intercept = [&](const Request& request) -> std::optional<Response> {
    if (!creates_pod(request)) return std::nullopt;
    std::unique_lock lock(mutex);
    ++begun;
    changed.notify_all();
    const bool met = changed.wait_for(lock, 60s, [&] { return begun == 1 || begun >= 3; });
    EXPECT_TRUE(met) << "one after the other";
    return std::nullopt;
  };
  world.submit("mnist", {{"replicaSpecs", {{"worker", {{"replicas", 40}}}}}});
  world.settle();
  EXPECT_EQ(world.server.objects("pods").size(), 43U);
  EXPECT_EQ(world.server.count("POST pods"), 43);
  world.run_all();
  world.run_for(5s);
  EXPECT_EQ(world.condition("Running"), "True AllReplicasReady");
  EXPECT_EQ(world.server.count("POST pods"), 43);
  world.server.end_pod(world.pod("chief-0"), 0);
  world.server.end_pod(world.pod("evaluator-0"), 0);
  for (int i = 0; i < 3; ++i) {
    world.run_for(2s);
    world.server.end_leaving_pods();
  }
  world.run_for(2s);
  EXPECT_EQ(world.condition("Finished"), "True ChiefSucceeded");
  for (const Json& pod : world.server.objects("pods")) {
    EXPECT_FALSE(is_tracked(pod)) << pod["metadata"]["name"];
  }
}

TEST_F(JobPodsTest, CreatesNoMoreForAJobThatIsDeletedMeanwhile) {
  for (const bool goes_at_once : {true, false}) {
    world_.submit();
    if (!goes_at_once) {
      Json job = world_.job();
      job["metadata"]["finalizers"] = {"foregroundDeletion"};
      server().put(job);
    }
    server().forget_calls();
    server().loses_answer = [&](const Request& request) {
      if (creates_pod(request) && server().count("POST pods") == 2) {
        server().remove("trainingjobs", "mnist");
        server().tell(world_.cluster().jobs(), "trainingjobs");
      }
      return false;
    };
    world_.settle();
    EXPECT_EQ(server().count("POST pods"), 2);
    for (const Json& pod : server().objects("pods")) EXPECT_FALSE(is_tracked(pod));
  }
}

// Its creation is an own write, and the job is deleted while that is under way.
TEST_F(JobPodsTest, LetsGoAPodThatShowsWhenNothingElseWakesItsJob) {
  world_.submit();
  world_.tells_of_pods = false;
  server().intercept = [&](const Request& request) -> std::optional<Response> {
    if (creates_pod(request)) {
      server().intercept = nullptr;
      server().remove("trainingjobs", "mnist");
      server().tell(world_.cluster().jobs(), "trainingjobs");
    }
    return std::nullopt;
  };
  world_.settle();
  ASSERT_EQ(server().objects("pods").size(), 1U);
  EXPECT_TRUE(is_tracked(server().objects("pods")[0]));
  world_.tells_of_pods = true;
  world_.settle();
  EXPECT_FALSE(is_tracked(server().objects("pods")[0]));
}

TEST_F(JobPodsTest, LetsGoAPodThatShowsWhileTheOthersAreLetGo) {
  world_.submit();
  world_.tells_of_pods = false;
  server().intercept = [&](const Request& request) -> std::optional<Response> {
    if (creates_pod(request) && server().count("POST pods") == 2) {
      server().tell(world_.cluster().pods(), "pods");
      server().remove("trainingjobs", "mnist");
      server().tell(world_.cluster().jobs(), "trainingjobs");
    }
    if (request.method == Method::patch && world_.cluster().pods().size() == 1) {
      server().tell(world_.cluster().pods(), "pods");
    }
    return std::nullopt;
  };
  world_.settle();
  EXPECT_EQ(server().count("POST pods"), 2);
  for (const Json& pod : server().objects("pods")) EXPECT_FALSE(is_tracked(pod));
}

TEST(JobPods, AQuotaForSomeOfManyIsAskedSeldomAndUsedWhole) {
  KubeWorld world(8);
  std::atomic<int> quota = 10;
  world.server.intercept = [&](const Request& request) -> std::optional<Response> {
    if (!creates_pod(request) || quota-- > 0) return std::nullopt;
    return refusal(403, "Forbidden", "exceeded quota: pods");
  };
  world.submit("mnist", {{"replicaSpecs", {{"worker", {{"replicas", 40}}}}}});
  world.settle();
  EXPECT_EQ(world.server.objects("pods").size(), 10U);
  EXPECT_EQ(world.server.count("POST pods"), 15) << "1, 2, 4 and 8";
  world.run_for(10s);
  EXPECT_EQ(world.condition("Running"), "False QuotaExceeded");
  EXPECT_EQ(world.server.objects("pods").size(), 10U);
  quota = 1000;
  world.run_for(60s);
  EXPECT_EQ(world.condition("Accepted"), "True Valid");
  EXPECT_EQ(world.server.objects("pods").size(), 43U);
}

TEST_F(JobPodsTest, AQuotaThatIsUsedUpIsToldAndWaitedFor) {
  server().intercept = [](const Request& request) {
    const bool pod = request.method == Method::post && request.path.ends_with("/pods");
    const std::string words =
        R"(pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2)";
    return pod ? std::optional(refusal(403, "Forbidden", words)) : std::nullopt;
  };
  world_.submit();
  world_.run_for(60s);
  EXPECT_EQ(world_.condition("Accepted"), "True Valid");
  EXPECT_EQ(world_.condition("Running"), "False QuotaExceeded");
  EXPECT_EQ(world_.job()["status"]["cause"],
            "quota q holds the job up: requested: pods=1, used: pods=2, limited: pods=2");
  EXPECT_EQ(std::ranges::count(world_.events, "mnist: QuotaExceeded"), 1);
  EXPECT_LT(server().count("PUT trainingjobs/status"), 5);
  server().intercept = nullptr;
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  EXPECT_EQ(world_.condition("Accepted"), "True Valid");
}

}  // namespace
}  // namespace muster::kube
