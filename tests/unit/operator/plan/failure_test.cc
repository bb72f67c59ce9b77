#include "operator/plan/failure.h"

#include <gmock/gmock.h>

#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

using api::FailureAction;
using testing::HasSubstr;

struct Case {
  const char* name;
  api::TrainingJob job;
  Role role;
  std::optional<int> code;
  std::string cause;
  bool deleting;
  FailureAction action;
  bool counts;
  const char* reason;
};

ObservedReplica ended(const Case& test) {
  ObservedReplica replica;
  replica.role = test.role;
  replica.phase = Phase::failed;
  replica.exit_code = test.code;
  replica.reason = test.cause;
  replica.deleting = test.deleting;
  return replica;
}

JobBuilder imaged() {
  return full_job().own_image();
}

constexpr auto kRestart = FailureAction::restart_replica;
constexpr auto kFail = FailureAction::fail_job;
constexpr auto kRestartJob = FailureAction::restart_job;
constexpr auto kIgnore = FailureAction::ignore;

std::vector<Case> cases() {
  auto ruled = [](FailureAction action) { return imaged().rule({3}, {}, {Role::worker}, action); };
  const JobBuilder two_rules = imaged().rule({3}, {}, {}, kFail).rule({3, 4}, {}, {}, kIgnore);
  const JobBuilder both = imaged().rule({137}, {"OOMKilled"}, {}, kFail);
  const JobBuilder evicted_fails = imaged().rule({}, {"Evicted"}, {}, kFail);
  const JobBuilder evicted_restarts = imaged().rule({}, {"Evicted"}, {}, kRestartJob);
  const JobBuilder never = imaged().never_restart(Role::worker);
  const JobBuilder never_but = imaged().never_restart(Role::worker).rule({3}, {}, {}, kRestart);
  const JobBuilder deleted_rule = imaged().rule({143}, {}, {}, kFail);
  const Role w = Role::worker, e = Role::evaluator;
  return {
      {"crash of an image restarts", imaged(), w, 1, "", false, kRestart, true, "ReplicaFailed"},
      {"bad input of an image restarts", imaged(), w, 65, "", false, kRestart, true,
       "ReplicaFailed"},
      {"crash of the trainer restarts", full_job(), w, 139, "", false, kRestart, true,
       "ReplicaFailed"},
      {"bad input of the trainer fails", full_job(), w, 65, "", false, kFail, false,
       "PermanentExitCode"},
      {"divergence fails", full_job(), Role::chief, 90, "", false, kFail, false,
       "PermanentExitCode"},
      {"unavailable restarts", full_job(), w, 69, "", false, kRestart, true, "ReplicaFailed"},
      {"no exit code restarts", full_job(), w, {}, "", false, kRestart, true, "ReplicaFailed"},
      {"OOM counts", full_job(), w, 137, "OOMKilled", false, kRestart, true, "ReplicaFailed"},
      {"eviction is not counted", full_job(), w, 137, "Evicted", false, kRestart, false, "Evicted"},
      {"preemption is not counted",
       full_job(),
       w,
       {},
       "Preempted",
       false,
       kRestart,
       false,
       "Preempted"},
      {"node loss is not counted",
       full_job(),
       Role::ps,
       {},
       "NodeLost",
       false,
       kRestart,
       false,
       "NodeLost"},
      {"143 when deleted is not counted", full_job(), w, 143, "", true, kRestart, false,
       "ReplicaDeleted"},
      {"143 by itself counts", full_job(), w, 143, "", false, kRestart, true, "ReplicaFailed"},
      {"137 when deleted is not counted", full_job(), w, 137, "", true, kRestart, false,
       "ReplicaDeleted"},
      {"137 of an image when deleted is not counted", imaged(), w, 137, "", true, kRestart, false,
       "ReplicaDeleted"},
      {"OOM when deleted is not counted", imaged(), w, 137, "OOMKilled", true, kRestart, false,
       "ReplicaDeleted"},
      {"a permanent code when deleted restarts", full_job(), w, 65, "", true, kRestart, false,
       "ReplicaDeleted"},
      {"no exit code when deleted is not counted",
       full_job(),
       w,
       {},
       "",
       true,
       kRestart,
       false,
       "ReplicaDeleted"},
      {"137 when evicted by a deletion is not counted", imaged(), w, 137, "Evicted", true, kRestart,
       false, "Evicted"},
      {"143 when evicted by a deletion is not counted", full_job(), w, 143, "Evicted", true,
       kRestart, false, "Evicted"},
      {"143 when preempted by a deletion is not counted", full_job(), w, 143, "Preempted", true,
       kRestart, false, "Preempted"},
      {"a rule may fail on an eviction by a deletion", evicted_fails, w, 137, "Evicted", true,
       kFail, false, "FailureRule"},
      {"no rule sees 143 when deleted", deleted_rule, w, 143, "", true, kRestart, false,
       "ReplicaDeleted"},
      {"a rule sees 143 by itself", deleted_rule, w, 143, "", false, kFail, true, "FailureRule"},
      {"rule fails", ruled(kFail), w, 3, "", false, kFail, true, "FailureRule"},
      {"rule restarts the job", ruled(kRestartJob), w, 3, "", false, kRestartJob, true,
       "FailureRule"},
      {"rule ignores", ruled(kIgnore), w, 3, "", false, kRestart, false, "FailureRule"},
      {"rule of another code", ruled(kFail), w, 4, "", false, kRestart, true, "ReplicaFailed"},
      {"rule of another role", ruled(kFail), Role::ps, 3, "", false, kRestart, true,
       "ReplicaFailed"},
      {"first rule wins", two_rules, w, 3, "", false, kFail, true, "FailureRule"},
      {"second rule where the first does not match", two_rules, w, 4, "", false, kRestart, false,
       "FailureRule"},
      {"code and reason must both match", both, w, 137, "", false, kRestart, true, "ReplicaFailed"},
      {"code and reason both match", both, w, 137, "OOMKilled", false, kFail, true, "FailureRule"},
      {"a rule may fail on eviction",
       evicted_fails,
       w,
       {},
       "Evicted",
       false,
       kFail,
       false,
       "FailureRule"},
      {"a rule restarts the job on eviction, uncounted",
       evicted_restarts,
       w,
       {},
       "Evicted",
       false,
       kRestartJob,
       false,
       "FailureRule"},
      {"Never fails the job", never, w, 1, "", false, kFail, false, "RestartPolicyNever"},
      {"Never fails the job on eviction",
       never,
       w,
       {},
       "Evicted",
       false,
       kFail,
       false,
       "RestartPolicyNever"},
      {"Never fails the job when deleted", never, w, 143, "", true, kFail, false,
       "RestartPolicyNever"},
      {"Never of another role", never, Role::ps, 1, "", false, kRestart, true, "ReplicaFailed"},
      {"a rule comes before Never", never_but, w, 3, "", false, kRestart, true, "FailureRule"},
      {"an evaluator never restarts the job", imaged().rule({3}, {}, {}, kRestartJob), e, 3, "",
       false, kRestart, true, "FailureRule"},
  };
}

TEST(Failure, FirstOpinionDecides) {
  for (const Case& test : cases()) {
    const Verdict verdict = judge(test.job, ended(test));
    EXPECT_EQ(verdict.action, test.action) << test.name;
    if (test.action != kFail) {
      EXPECT_EQ(verdict.counts, test.counts) << test.name;
    }
    EXPECT_EQ(verdict.reason, test.reason) << test.name;
  }
}

TEST(Failure, ADeletionNeverUsesUpTheLimitAndItsEventNamesIt) {
  for (const JobBuilder& job : {full_job().backoff_limit(0), imaged().backoff_limit(0)}) {
    for (const int code : {137, 143, 1, 65}) {
      Scene scene(job);
      scene.start();
      for (int i = 0; i < 3; ++i) {
        scene.replica(Role::worker, 1).deleting = true;
        scene.fail(Role::worker, 1, code);
        const Plan plan = scene.step();
        ASSERT_EQ(plan.events.size(), 1u);
        EXPECT_EQ(plan.events[0].reason, "ReplicaDeleted");
        EXPECT_THAT(plan.events[0].message,
                    HasSubstr("worker-1 was deleted and ended with exit code"));
        EXPECT_THAT(plan.events[0].message,
                    HasSubstr("it restarts, which does not count against backoffLimit"));
        scene.step_after(400);
        scene.start_all();
        scene.step();
      }
      EXPECT_FALSE(scene.has("FailureTarget")) << code;
      EXPECT_EQ(scene.job.status.restarts, 0) << code;
      EXPECT_EQ(scene.record(Role::worker, 1).attempt, 3) << code;
    }
  }
}

TEST(Failure, OneThatHadFailedBeforeItWasDeletedCountsOnce) {
  for (const JobBuilder& job : {full_job(), imaged()}) {
    Scene scene(job);
    scene.start();
    scene.fail(Role::worker, 1, 137);
    scene.replica(Role::worker, 1).deleting = true;
    scene.replica(Role::worker, 1).ended_first = true;
    scene.step();
    scene.step();
    EXPECT_EQ(scene.job.status.restarts, 1);
    EXPECT_EQ(scene.reason("Restarting"), "ReplicaFailed");
  }
}

TEST(Failure, RestartsInPlaceFromBeforeADeletionCount) {
  Scene scene(imaged());
  scene.start();
  ObservedReplica& worker = scene.replica(Role::worker, 1);
  worker.restarts = 2;
  worker.exit_code = 137;
  worker.deleting = true;
  scene.step();
  scene.fail(Role::worker, 1, 137);
  scene.step();
  EXPECT_EQ(scene.job.status.restarts, 2);
}

// A program of the user's may well answer SIGTERM with 0.
TEST(Failure, AnImageThatEndsWithZeroWhenDeletedIsStartedAgain) {
  Scene scene(imaged());
  scene.start();
  scene.replica(Role::chief).deleting = true;
  scene.succeed(Role::chief);
  EXPECT_EQ(created(scene.step()), "chief-0.1");
  EXPECT_FALSE(scene.has("SuccessCriteriaMet"));
  EXPECT_EQ(scene.job.status.restarts, 0);
}

TEST(Failure, AnImageThatHadSucceededBeforeItWasDeletedHas) {
  Scene scene(imaged());
  scene.start();
  scene.succeed(Role::chief);
  scene.replica(Role::chief).deleting = true;
  scene.replica(Role::chief).ended_first = true;
  scene.step();
  EXPECT_TRUE(scene.has("SuccessCriteriaMet"));
}

TEST(Failure, CrashIsRestartedAtOnceWithTheNextAttemptAndCounted) {
  Scene scene(full_job());
  scene.start();
  scene.fail(Role::worker, 1, 1, "", "out of luck");
  const Plan plan = scene.step();
  EXPECT_EQ(created(plan), "worker-1.1");
  EXPECT_EQ(scene.job.status.restarts, 1);
  EXPECT_EQ(scene.record(Role::worker, 1).restarts, 1);
  EXPECT_EQ(scene.job.status.replica_statuses[Role::worker].restarts, 1);
  const std::map<std::string, int> reasons = {{"ReplicaFailed", 1}};
  EXPECT_EQ(scene.job.status.restart_reasons[Role::worker], reasons);
  EXPECT_TRUE(scene.has("Restarting"));
  EXPECT_THAT(scene.condition("Restarting").message, HasSubstr("worker-1"));
  EXPECT_THAT(scene.condition("Restarting").message, HasSubstr("out of luck"));
  scene.start_all();
  scene.step();
  EXPECT_FALSE(scene.has("Restarting"));
  EXPECT_TRUE(scene.has("Running"));
}

TEST(Failure, WhoWasKilledForMemoryIsCountedSo) {
  Scene scene(full_job());
  scene.start();
  scene.fail(Role::worker, 1, 137, "OOMKilled");
  scene.step();
  const std::map<std::string, int> reasons = {{"OOMKilled", 1}};
  EXPECT_EQ(scene.job.status.restart_reasons[Role::worker], reasons);
  EXPECT_EQ(scene.condition("Restarting").reason, "ReplicaFailed");
}

TEST(Failure, WhoHasLostAGpuPrefersOtherNodes) {
  Scene scene(full_job());
  scene.start();
  const auto lose_gpu_on = [&](const std::string& node) {
    scene.replica(Role::worker, 1).node = node;
    scene.fail(Role::worker, 1, 71);
    scene.step_after(1000);
    scene.start_all();
    scene.step();
  };
  lose_gpu_on("node-a");
  EXPECT_EQ(scene.record(Role::worker, 1).avoided_nodes, std::vector<std::string>{"node-a"});
  EXPECT_TRUE(scene.record(Role::worker, 0).avoided_nodes.empty());
  EXPECT_EQ(scene.job.status.restarts, 1);
  lose_gpu_on("node-b");
  lose_gpu_on("node-a");
  EXPECT_EQ(scene.record(Role::worker, 1).avoided_nodes,
            (std::vector<std::string>{"node-b", "node-a"}));
}

// The job after its worker 1 has lost a GPU of the node "node-a".
Scene without_gpu(const api::TrainingJob& job) {
  Scene scene(job);
  scene.start();
  scene.replica(Role::worker, 1).node = "node-a";
  scene.fail(Role::worker, 1, 71);
  scene.step();
  return scene;
}

TEST(Failure, TheMessageSaysWhichNodeIsAvoided) {
  const Scene scene = without_gpu(full_job());
  EXPECT_THAT(scene.condition("Restarting").message, HasSubstr("on another node than node-a"));
}

TEST(Failure, TheExitCodeOfALostGpuMeansNothingOfAnImage) {
  const Scene scene = without_gpu(imaged());
  EXPECT_TRUE(scene.record(Role::worker, 1).avoided_nodes.empty());
}

TEST(Failure, EachEndIsCountedOnceThoughTheOldReplicaStaysInView) {
  Scene scene(full_job().clean(api::CleanPodPolicy::none));
  scene.start();
  for (int round = 1; round <= 3; ++round) {
    scene.fail(Role::worker, 0, 1);
    scene.step();
    for (int look = 0; look < 3; ++look) scene.step_after(10);
    scene.start_all();
    scene.step();
    EXPECT_EQ(scene.job.status.restarts, round);
    EXPECT_EQ(scene.job.status.counted_uids.size(), static_cast<size_t>(round));
  }
}

TEST(Failure, TwoEndedAttemptsOfOneIndexCountOnlyTheCurrentOne) {
  Scene scene(full_job().clean(api::CleanPodPolicy::none));
  scene.start();
  scene.fail(Role::worker, 0, 1);
  scene.step();
  scene.start_all();
  scene.fail(Role::worker, 0, 1);
  scene.step();
  EXPECT_EQ(scene.job.status.restarts, 2);
  EXPECT_EQ(scene.record(Role::worker, 0).attempt, 2);
}

TEST(Failure, AViewFromBeforeTheRestartChangesNoCount) {
  Scene scene(full_job());
  scene.start();
  const Observed before = scene.view;
  scene.fail(Role::worker, 0, 1);
  const Observed ended_view = scene.view;
  scene.step();
  for (const Observed& old : {before, ended_view}) {
    const Plan plan = muster::plan::plan(scene.job, old, scene.now);
    EXPECT_EQ(plan.status.restarts, 1);
    EXPECT_EQ(plan.status.records, scene.job.status.records);
  }
}

TEST(Failure, ACreationNotYetInViewIsRepeatedWithTheSameAttempt) {
  Scene scene(full_job());
  scene.start();
  scene.fail(Role::worker, 0, 1);
  Observed lagging = scene.view;
  EXPECT_EQ(created(scene.step()), "worker-0.1");
  const Plan again = muster::plan::plan(scene.job, lagging, scene.now + std::chrono::seconds(1));
  EXPECT_EQ(created(again), "worker-0.1");
  EXPECT_EQ(again.status.records, scene.job.status.records);
}

TEST(Failure, OneRestartMoreThanTheLimitFailsTheJob) {
  for (int limit : {0, 1, 3}) {
    Scene scene(full_job().backoff_limit(limit));
    scene.start();
    for (int i = 0; i < limit; ++i) {
      scene.fail(Role::worker, i % 2, 1);
      scene.step();
      scene.step_after(60);
      scene.start_all();
      scene.step();
      EXPECT_FALSE(scene.has("FailureTarget")) << limit;
    }
    scene.fail(Role::ps, 0, 1, "", "the straw");
    scene.step();
    EXPECT_EQ(scene.reason("FailureTarget"), "BackoffLimitExceeded") << limit;
    EXPECT_THAT(scene.condition("FailureTarget").message, HasSubstr("ps-0"));
    EXPECT_THAT(scene.condition("FailureTarget").message, HasSubstr("the straw"));
    EXPECT_EQ(scene.job.status.restarts, limit);
  }
}

// Each row is what happens, look by look; f01: worker-0 and worker-1 fail, r0: worker-0's successor
// is ready. All rows begin with three workers that are ready.
TEST(Failure, ReplicasThatFailTogetherUseUpOneRestart) {
  struct Case {
    const char* name;
    std::vector<std::string> looks;
    int restarts;
  };
  const Case cases[] = {
      {"one", {"f0"}, 1},
      {"two in the same look", {"f01"}, 1},
      {"all in the same look", {"f012"}, 1},
      {"one after the other, before the first is ready", {"f0", "f1", "f2"}, 1},
      {"the second once the first is ready", {"f0", "r0", "f1"}, 2},
      {"the third once only one of two is ready", {"f01", "r0", "f2"}, 1},
      {"the third once both are ready", {"f01", "r01", "f2"}, 2},
      {"the same one again, before it is ready", {"f0", "f0", "f0"}, 3},
      {"both again, before they are ready", {"f01", "f01", "f01"}, 3},
      {"both again, one after the other", {"f0", "f1", "f0", "f1", "f0", "f1"}, 3},
      {"both again, once they are ready", {"f01", "r01", "f01", "r01", "f01"}, 3},
      {"one that keeps failing beside one that waits", {"f01", "f1", "f1", "f0"}, 3},
  };
  for (const Case& test : cases) {
    Scene scene(make_job().workers(3).backoff_limit(6));
    scene.start();
    for (const std::string& look : test.looks) {
      for (const char worker : look.substr(1)) {
        const int index = worker - '0';
        if (look[0] == 'f') {
          scene.fail(Role::worker, index, 1);
        } else {
          scene.replica(Role::worker, index).phase = Phase::running;
          scene.replica(Role::worker, index).ready = true;
        }
      }
      scene.step();
      scene.step_after(400);  // the back-off is over
    }
    EXPECT_EQ(scene.job.status.restarts, test.restarts) << test.name;
    EXPECT_FALSE(scene.has("FailureTarget")) << test.name;
  }
}

// A program of one's own is ready as soon as it runs.
TEST(Failure, ProgramsOfOnesOwnThatFailTogetherUseUpOneRestart) {
  struct End {
    double seconds;
    int worker;
  };
  struct Case {
    const char* name;
    std::vector<End> ends;
    int restarts;
  };
  const Case cases[] = {
      {"peers notice one after the other", {{3, 3}, {3.2, 0}, {3.5, 1}, {3.9, 2}}, 1},
      {"a peer that waits for its own time-out", {{3, 3}, {4, 0}, {640, 1}}, 1},
      {"a peer long after", {{3, 3}, {1000, 0}}, 2},
      {"the replacement, which met a peer that was ending", {{3, 0}, {4, 1}, {4.5, 0}, {5, 2}}, 1},
      {"one by itself, again and again", {{3, 0}, {6, 0}, {9, 0}}, 3},
      {"all, and all once more", {{3, 0}, {4, 1}, {5, 2}, {60, 0}, {61, 1}, {62, 2}}, 2},
      {"an end that is seen late", {{3, 3}, {1000, 0}, {50, 1}}, 3},
      {"two apart", {{3, 0}, {1000, 1}, {2000, 0}}, 3},
  };
  for (const Case& test : cases) {
    Scene scene(make_job().workers(4).backoff_limit(6).own_image());
    scene.start();
    for (const End& end : test.ends) {
      scene.now = at(end.seconds);
      scene.step();
      scene.start_all();
      scene.fail(Role::worker, end.worker, 1);
      scene.step();
      scene.start_all();
      scene.step();
    }
    EXPECT_EQ(scene.job.status.restarts, test.restarts) << test.name;
    EXPECT_FALSE(scene.has("FailureTarget")) << test.name;
  }
}

TEST(Failure, ARestartInPlaceLongAfterARoundOfOnesOwnProgramsUsesUpAnother) {
  for (const auto& [seconds, restarts] : {std::pair(5.0, 1), std::pair(5000.0, 2)}) {
    Scene scene(make_job().workers(2).own_image());
    scene.start();
    scene.fail(Role::worker, 0, 1);
    scene.step();
    scene.start_all();
    scene.step_after(seconds);
    scene.replica(Role::worker, 1).restarts = 1;
    scene.replica(Role::worker, 1).exit_code = 1;
    scene.step();
    EXPECT_EQ(scene.job.status.restarts, restarts) << seconds;
  }
}

TEST(Failure, RestartsInPlaceOfOneRoundUseUpOneRestart) {
  Scene scene(full_job());
  scene.start();
  for (const int index : {0, 1}) {
    scene.replica(Role::worker, index).restarts = 1;
    scene.replica(Role::worker, index).exit_code = 1;
  }
  scene.step();
  EXPECT_EQ(scene.job.status.restarts, 1);
  EXPECT_EQ(scene.job.status.replica_statuses[Role::worker].restarts, 2);
  scene.replica(Role::worker, 1).restarts = 3;
  scene.step();
  EXPECT_EQ(scene.job.status.restarts, 3) << "two more rounds";
}

TEST(Failure, DisruptionsNeverUseUpTheLimit) {
  Scene scene(full_job().backoff_limit(0));
  scene.start();
  for (int i = 0; i < 20; ++i) {
    scene.fail(Role::worker, 0, 137, i % 2 == 0 ? "Evicted" : "NodeLost");
    scene.step();
    scene.step_after(400);
    scene.start_all();
    scene.step();
  }
  EXPECT_FALSE(scene.has("FailureTarget"));
  EXPECT_EQ(scene.job.status.restarts, 0);
  EXPECT_EQ(scene.record(Role::worker, 0).attempt, 20);
}

TEST(Failure, ThePermanentExitCodeIsNamedWithReplicaAndLastLine) {
  Scene scene(full_job());
  scene.start();
  scene.fail(Role::worker, 1, 65, "", "train-images: truncated");
  scene.step();
  EXPECT_EQ(scene.reason("FailureTarget"), "PermanentExitCode");
  EXPECT_THAT(scene.condition("FailureTarget").message,
              HasSubstr("worker-1 ended with exit code 65"));
  EXPECT_THAT(scene.condition("FailureTarget").message, HasSubstr("train-images: truncated"));
}

TEST(Failure, TheFirstOfSeveralFailuresIsNamed) {
  Scene scene(full_job());
  scene.start();
  scene.now += std::chrono::seconds(2);
  scene.fail(Role::ps, 0, 65);
  scene.fail(Role::worker, 1, 90);
  scene.replica(Role::worker, 1).finished = scene.now - std::chrono::seconds(1);
  scene.step();
  EXPECT_THAT(scene.condition("FailureTarget").message, HasSubstr("worker-1"));
}

TEST(Failure, RestartJobRemovesEverythingAndThenCreatesItAnew) {
  Scene scene(full_job().rule({8}, {}, {}, kRestartJob));
  scene.start();
  scene.succeed(Role::worker, 0);
  scene.step();
  scene.fail(Role::worker, 1, 8);
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.job.status.run, 1);
  EXPECT_EQ(scene.job.status.restarts, 1);
  EXPECT_EQ(scene.reason("Restarting"), "JobRestart");
  EXPECT_EQ(scene.leaving(), "chief-0 evaluator-0") << "ps serves until the members have gone";
  scene.leave_all();
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.leaving(), "ps-0");
  scene.leave_all();
  const Plan plan = scene.step();
  EXPECT_EQ(created(plan), "ps-0.1 chief-0.1 worker-0.1 worker-1.1 evaluator-0.1");
  for (const CreateReplica& creation : plan.create) EXPECT_EQ(creation.run, 1);
  EXPECT_EQ(scene.job.status.restarts, 1) << "only the cause is counted";
}

TEST(Failure, ASuccessFromBeforeARestartOfTheJobIsVoid) {
  Scene scene(full_job().rule({8}, {}, {}, kRestartJob));
  scene.start();
  scene.fail(Role::worker, 1, 8);
  scene.step();
  scene.succeed(Role::chief);
  scene.step();
  EXPECT_FALSE(scene.has("SuccessCriteriaMet"));
  EXPECT_FALSE(scene.record(Role::chief).succeeded);
}

TEST(Failure, ACrashLoopingReplicaIsReplacedAndCountedOnce) {
  Scene scene(full_job());
  scene.start();
  ObservedReplica& looping = scene.replica(Role::worker, 0);
  looping.reason = "CrashLoopBackOff";
  looping.ready = false;
  looping.exit_code = 1;
  EXPECT_EQ(created(scene.step()), "") << "not before the old one has gone";
  EXPECT_EQ(scene.leaving(), "worker-0");
  EXPECT_EQ(scene.job.status.restarts, 1);
  scene.leave_all(137);
  EXPECT_EQ(created(scene.step()), "worker-0.1");
  EXPECT_EQ(scene.job.status.restarts, 1);
}

TEST(Failure, AFailedEvaluatorRestartsWithinItsOwnLimitAndNeverFailsTheJob) {
  Scene scene(full_job().backoff_limit(2));
  scene.start();
  for (int i = 0; i < 3; ++i) {
    scene.fail(Role::evaluator, 0, 1);
    scene.step();
    scene.step_after(60);
    scene.start_all();
    scene.step();
  }
  EXPECT_FALSE(scene.has("FailureTarget"));
  EXPECT_TRUE(scene.record(Role::evaluator).failed);
  EXPECT_EQ(scene.job.status.replica_statuses[Role::evaluator].failed, 1);
  EXPECT_EQ(scene.job.status.replica_statuses[Role::evaluator].restarts, 2);
  EXPECT_EQ(scene.job.status.restarts, 0);
  EXPECT_TRUE(scene.has("Running")) << "the others train on";
}

TEST(Failure, AnEvaluatorWithAPermanentExitCodeIsGivenUp) {
  for (const JobBuilder& job : {full_job(), full_job().never_restart(Role::evaluator)}) {
    Scene scene(job);
    scene.start();
    scene.fail(Role::evaluator, 0, 65);
    EXPECT_EQ(created(scene.step()), "");
    EXPECT_FALSE(scene.has("FailureTarget"));
    EXPECT_TRUE(scene.record(Role::evaluator).failed);
  }
}

JobBuilder dynamic() {
  return make_job().own_image().ps(1).workers(2).dynamic_workers().never_restart(Role::worker);
}

TEST(Failure, AWorkerThatMayBeMissingFailsNoJob) {
  Scene scene(dynamic().decided_by(api::DecidedBy::worker_zero).rule({1}, {}, {}, kFail));
  scene.start();
  scene.fail(Role::worker, 1, 137);
  const Plan plan = scene.step();
  EXPECT_THAT(plan.events.at(0).reason, "WorkerGivenUp");
  EXPECT_EQ(created(plan), "");
  EXPECT_FALSE(scene.has("FailureTarget"));
  EXPECT_EQ(scene.job.status.replica_statuses[Role::worker].failed, 1);
  scene.succeed(Role::worker, 0);
  scene.step();
  EXPECT_TRUE(scene.has("SuccessCriteriaMet"));
}

TEST(Failure, NobodyWaitsForAWorkerThatIsMissing) {
  Scene scene(dynamic().decided_by(api::DecidedBy::worker_zero).evaluator().in_order());
  for (const char* next : {"ps-0.0", "worker-0.0 worker-1.0"}) {
    EXPECT_EQ(created(scene.step()), next);
    scene.start_all();
  }
  scene.fail(Role::worker, 1, 137);
  EXPECT_EQ(created(scene.step()), "evaluator-0.0");
}

TEST(Failure, AnythingElseOfAJobWithDynamicWorkersDoes) {
  const struct {
    const char* name;
    JobBuilder job;
    Role role;
  } cases[] = {
      {"a rule", dynamic().rule({3}, {}, {}, kFail), Role::worker},
      {"a ps", dynamic().never_restart(Role::ps), Role::ps},
      {"the limit", make_job().own_image().workers(2).dynamic_workers().backoff_limit(0),
       Role::worker},
  };
  for (const auto& [name, job, role] : cases) {
    Scene scene(job);
    scene.start();
    scene.fail(role, 0, 3);
    scene.step();
    EXPECT_TRUE(scene.has("FailureTarget")) << name;
  }
}

// kubeflow.org/v1 would wait for ever.
TEST(Failure, AJobWithoutAWorkerThatCouldDecideItFails) {
  using enum api::DecidedBy;
  const struct {
    api::DecidedBy decided_by;
    bool others_succeed, fails;
  } cases[] = {{worker_zero, true, true},
               {worker_zero, false, true},
               {all_workers, true, true},
               {chief, false, false}};
  for (const auto& [decided_by, others_succeed, fails] : cases) {
    Scene scene(decided_by == chief ? dynamic().chief() : dynamic().decided_by(decided_by));
    scene.start();
    scene.fail(Role::worker, 0, 1);
    scene.step();
    EXPECT_FALSE(scene.has("FailureTarget")) << "worker-1 runs";
    others_succeed ? scene.succeed(Role::worker, 1) : scene.fail(Role::worker, 1, 1);
    scene.step();
    EXPECT_EQ(scene.has("FailureTarget"), fails);
  }
}

}  // namespace
}  // namespace muster::plan
