#include "operator/plan/scaling.h"

#include <gmock/gmock.h>

#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobBuilder elastic() {
  return make_job().chief().workers(2).evaluator().elastic(1, 4);
}

// A job whose replicas all run.
Scene running(const api::TrainingJob& job) {
  Scene scene(job);
  scene.start();
  EXPECT_TRUE(scene.has("Running"));
  return scene;
}

Plan scale(Scene& scene, int workers) {
  scene.job.replicas[Role::worker].replicas = workers;
  ++scene.job.generation;
  return scene.step();
}

std::vector<std::string> events_of(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Event& event : plan.events) texts.push_back(event.reason + ": " + event.message);
  return texts;
}

TEST(Scaling, UpCreatesTheHighestIndicesAndNothingElse) {
  Scene scene = running(elastic());
  const Plan plan = scale(scene, 4);
  EXPECT_EQ(created(plan), "worker-2.0 worker-3.0");
  EXPECT_TRUE(plan.remove.empty());
  scene.start_all();
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.live(), "chief-0 worker-0 worker-1 worker-2 worker-3 evaluator-0");
  EXPECT_EQ(scene.job.status.replica_statuses[Role::worker].ready, 4);
}

TEST(Scaling, DownAsksTheHighestIndicesToLeaveAndNobodyElse) {
  Scene scene = running(elastic().workers(4));
  const Plan plan = scale(scene, 1);
  EXPECT_EQ(scene.leaving(), "worker-1 worker-2 worker-3");
  EXPECT_EQ(created(plan), "");
  EXPECT_THAT(events_of(plan),
              ElementsAre("Scaled: the job is scaled (worker from 4 to 1); nobody is restarted"));
}

// What becomes of a job of which worker-1 was scaled away and ended so, whether it was wanted again
// meanwhile or not.
TEST(Scaling, AwayAnEndDecidesAndCountsNothingWhateverItsCode) {
  struct Case {
    int code;
    const char* reason;
  };
  const Case cases[] = {{143, ""},          {0, ""},  {1, ""},          {65, ""}, {78, ""},
                        {137, "OOMKilled"}, {90, ""}, {137, "NodeLost"}};
  for (const api::DecidedBy decided_by :
       {api::DecidedBy::chief, api::DecidedBy::all_workers, api::DecidedBy::worker_zero}) {
    for (const Case& end : cases) {
      for (const bool wanted_again : {false, true}) {
        Scene scene = running(elastic()
                                  .decided_by(decided_by)
                                  .backoff_limit(0)
                                  .never_restart(Role::worker)
                                  .rule({1}, {}, {Role::worker}, api::FailureAction::restart_job)
                                  .rule({}, {"OOMKilled"}, {}, api::FailureAction::fail_job));
        scale(scene, 1);
        if (wanted_again) scale(scene, 2);
        const std::string which = std::to_string(end.code) + end.reason + (wanted_again ? "+" : "");
        EXPECT_EQ(scene.leaving(), "worker-1") << which;
        if (end.code == 0) {
          scene.succeed(Role::worker, 1);
        } else {
          scene.fail(Role::worker, 1, end.code, end.reason);
        }
        const Plan plan = scene.step();
        EXPECT_EQ(created(plan), wanted_again ? "worker-1.1" : "") << which;
        EXPECT_FALSE(scene.has("FailureTarget")) << which;
        EXPECT_FALSE(scene.has("SuccessCriteriaMet")) << which;
        EXPECT_EQ(scene.job.status.restarts, 0) << which;
        EXPECT_EQ(scene.job.status.run, 0) << which;
        const api::ReplicaStatus workers = scene.job.status.replica_statuses[Role::worker];
        EXPECT_EQ(workers, (api::ReplicaStatus{1, wanted_again ? 2 : 1, 0, 0, 0})) << which;
        EXPECT_THAT(scene.job.status.counted_uids, ElementsAre("worker-1-0")) << which;
      }
    }
  }
}

TEST(Scaling, UpAgainTheIndexComesBackOnceItsPredecessorHasEnded) {
  Scene scene = running(elastic().workers(3));
  scale(scene, 1);
  EXPECT_EQ(created(scale(scene, 3)), "") << "never two of one index";
  EXPECT_EQ(scene.leaving(), "worker-1 worker-2") << "who was told to leave leaves";
  scene.leave_all();
  EXPECT_EQ(created(scene.step()), "worker-1.1 worker-2.1");
  scene.start_all();
  scene.step();
  scale(scene, 1);
  scene.leave_all(0);
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(created(scale(scene, 3)), "worker-1.2 worker-2.2");
}

TEST(Scaling, ARemovalThatWasLostIsRepeatedEvenIfTheIndexIsWantedAgain) {
  Scene scene = running(elastic());
  scene.job.replicas[Role::worker].replicas = 1;
  scene.job.status = plan(scene.job, scene.view, scene.now).status;  // and nothing was done
  EXPECT_EQ(created(scale(scene, 2)), "");
  EXPECT_EQ(scene.leaving(), "worker-1");
}

TEST(Scaling, RestartsInPlaceOfOneThatLeavesAreNotCounted) {
  Scene scene = running(elastic().backoff_limit(0));
  scale(scene, 1);
  scene.replica(Role::worker, 1).restarts = 2;
  scene.replica(Role::worker, 1).exit_code = 1;
  scale(scene, 2);
  EXPECT_FALSE(scene.has("FailureTarget"));
  EXPECT_EQ(scene.job.status.restarts, 0);
}

TEST(Scaling, ASuccessOfOneThatWasNotSentAwayStays) {
  Scene scene = running(elastic().decided_by(api::DecidedBy::all_workers).workers(3));
  scene.succeed(Role::worker, 2);
  scene.step();
  scale(scene, 2);
  EXPECT_EQ(created(scale(scene, 3)), "");
  scene.succeed(Role::worker, 0);
  scene.succeed(Role::worker, 1);
  scene.step();
  EXPECT_TRUE(scene.has("SuccessCriteriaMet"));
}

TEST(Scaling, DownToThoseThatHaveSucceededDecidesAJobOfAllWorkers) {
  Scene scene = running(make_job().workers(3).elastic(1, 3));
  scene.succeed(Role::worker, 0);
  scene.step();
  EXPECT_FALSE(scene.has("SuccessCriteriaMet"));
  scale(scene, 1);
  EXPECT_TRUE(scene.has("SuccessCriteriaMet"));
  EXPECT_EQ(scene.reason("SuccessCriteriaMet"), "AllWorkersSucceeded");
}

TEST(Scaling, ALostWorkerIsReplacedWhileTheGroupGoesOn) {
  Scene scene = running(elastic());
  scene.fail(Role::worker, 1, 137);
  const Plan plan = scene.step();
  EXPECT_EQ(created(plan), "worker-1.1");
  EXPECT_EQ(scene.job.status.restarts, 1);
  EXPECT_TRUE(scene.has("Running"));
  EXPECT_EQ(scene.reason("Running"), "EnoughReplicasReady");
  EXPECT_EQ(scene.condition("Running").message, "3 of 4 replicas are ready");
  EXPECT_EQ(scene.job.status.find("Restarting"), nullptr);
  scene.start_all();
  scene.step();
  EXPECT_EQ(scene.reason("Running"), "AllReplicasReady");
}

TEST(Scaling, AGroupThatIsTooSmallOrHasNoChiefDoesNotRun) {
  Scene small = running(elastic().elastic(2, 4));
  small.fail(Role::worker, 1, 137);
  small.step();
  EXPECT_FALSE(small.has("Running"));
  EXPECT_TRUE(small.has("Restarting"));
  Scene headless = running(elastic());
  headless.fail(Role::chief, 0, 137);
  headless.step();
  EXPECT_FALSE(headless.has("Running"));
  EXPECT_TRUE(headless.has("Restarting"));
}

TEST(Scaling, AWorkerThatCannotBePlacedIsNamedWhileTheGroupRuns) {
  Scene scene = running(elastic());
  scale(scene, 3);
  scene.replica(Role::worker, 2).reason = "Unschedulable";
  scene.step();
  EXPECT_TRUE(scene.has("Running"));
  EXPECT_THAT(scene.condition("Running").message, HasSubstr("4 of 5 replicas are ready; worker-2"));
}

TEST(Scaling, ASuspendedJobResumesWithAsManyAsItWants) {
  Scene scene = running(elastic().workers(3));
  scene.job.suspend = true;
  scene.step();
  scene.leave_all();
  scene.step();
  ASSERT_TRUE(scene.has("Suspended"));
  scale(scene, 1);
  scene.job.suspend = false;
  EXPECT_EQ(created(scene.step()), "chief-0.1 worker-0.1 evaluator-0.1");
  scene.start_all();
  scene.step();
  EXPECT_EQ(created(scale(scene, 2)), "worker-1.1");
}

JobBuilder own() {
  return make_job().ps(1).chief().workers(2).own_image().backoff_limit(0);
}

// One TF_CONFIG for all: nobody of the old group runs beside one of the new.
TEST(Scaling, OfOnesOwnProgramsRestartsTheGroupUncounted) {
  for (const int workers : {1, 3}) {
    Scene scene = running(own());
    const Plan plan = scale(scene, workers);
    EXPECT_EQ(created(plan), "") << "not beside the old ones";
    const std::string counts = "2 to " + std::to_string(workers);
    EXPECT_THAT(events_of(plan),
                ElementsAre("Scaled: the job is scaled (worker from " + counts +
                            "); all replicas restart, to have the same TF_CONFIG, which does not "
                            "count against backoffLimit"));
    EXPECT_EQ(scene.reason("Restarting"), "Scaled");
    EXPECT_EQ(scene.leaving(), "chief-0 worker-0 worker-1");
    scene.leave_all(137);
    scene.step();
    scene.leave_all(137);
    EXPECT_EQ(created(scene.step()), workers == 1
                                         ? "ps-0.1 chief-0.1 worker-0.1"
                                         : "ps-0.1 chief-0.1 worker-0.1 worker-1.1 worker-2.0");
    scene.start_all();
    scene.step();
    EXPECT_TRUE(scene.has("Running"));
    EXPECT_EQ(scene.job.status.restarts, 0);
    EXPECT_FALSE(scene.has("FailureTarget"));
  }
}

TEST(Scaling, WorkersThatTheProgramsTakeComeAndGo) {
  Scene scene = running(own().dynamic_workers());
  Plan plan = scale(scene, 3);
  EXPECT_EQ(created(plan), "worker-2.0");
  EXPECT_EQ(scene.leaving(), "");
  EXPECT_THAT(events_of(plan),
              ElementsAre("Scaled: the job is scaled (worker from 2 to 3); nobody is restarted"));
  scene.start_all();
  scene.step();
  plan = scale(scene, 1);
  EXPECT_EQ(scene.leaving(), "worker-1 worker-2");
  scene.leave_all(1);
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.live(), "ps-0 chief-0 worker-0");
  EXPECT_FALSE(scene.has("FailureTarget"));
  EXPECT_EQ(scene.job.status.run, 0);
}

TEST(Scaling, AnotherNumberOfPsRestartsTheGroupThoughWorkersMayChange) {
  Scene scene = running(own().dynamic_workers());
  scene.job.replicas[Role::ps].replicas = 2;
  const Plan plan = scale(scene, 2);
  EXPECT_EQ(scene.reason("Restarting"), "Scaled");
  EXPECT_THAT(events_of(plan), ElementsAre(HasSubstr("(ps from 1 to 2); all replicas restart")));
}

TEST(Scaling, BeforeTheStartAndWhileSuspendedRestartsNobody) {
  Scene waiting(own());
  waiting.view.invalid_template = "no such field";
  waiting.step();
  waiting.view.invalid_template.reset();
  EXPECT_EQ(created(scale(waiting, 3)), "ps-0.0 chief-0.0 worker-0.0 worker-1.0 worker-2.0");
  EXPECT_EQ(waiting.job.status.run, 0);

  Scene scene = running(own());
  scene.job.suspend = true;
  scene.step();
  scene.leave_all();
  scene.step();
  scene.leave_all();
  scene.step();
  ASSERT_TRUE(scene.has("Suspended"));
  EXPECT_THAT(events_of(scale(scene, 3)), ElementsAre());
  scene.job.suspend = false;
  scene.step();
  EXPECT_EQ(scene.live(), "ps-0 chief-0 worker-0 worker-1 worker-2");
  EXPECT_EQ(scene.job.status.run, 1);
}

TEST(Scaling, AStatusThatDoesNotKnowTheGroupYetTakesTheOneThereIs) {
  Scene scene = running(own());
  scene.job.status.group.clear();  // of an operator that did not write it
  EXPECT_THAT(events_of(scale(scene, 2)), ElementsAre());
  EXPECT_EQ(scene.job.status.run, 0);
  scale(scene, 3);
  EXPECT_EQ(scene.job.status.run, 1);
}

TEST(Scaling, AJobThatHasSucceededInTheSameLookIsNotRestarted) {
  Scene scene = running(own());
  scene.succeed(Role::chief);
  scale(scene, 3);
  EXPECT_TRUE(scene.has("SuccessCriteriaMet"));
  EXPECT_EQ(scene.job.status.run, 0);
}

TEST(Scaling, OfAJobThatIsNotElasticNeedsAllToRun) {
  Scene scene = running(make_job().chief().workers(2));
  scene.fail(Role::worker, 1, 137);
  scene.step();
  EXPECT_FALSE(scene.has("Running"));
  EXPECT_TRUE(scene.has("Restarting"));
}

}  // namespace
}  // namespace muster::plan
