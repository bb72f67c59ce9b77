#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/chaos/chaos_job.h"

namespace muster::chaos {
namespace {

// Longer than any test waits: who believes what is no longer so fails it.
constexpr int kLate = 600;

class LateTest : public testing::TestWithParam<int> {
 protected:
  // Calls `body` with a job of two hosts. Host 1 believes that nothing is stored: it looked before
  // the job began.
  template <class Body>
  static void repeat(const std::string& name, const Shape& given, Body body) {
    for (int run = 0; run < Amount::get().few() && !HasFailure(); ++run) {
      SCOPED_TRACE("run " + std::to_string(run));
      Chance chance(run);
      Shape shape = given;
      shape.late_seconds = kLate;
      shape.evaluator = true;
      ChaosJob job(name, chance, shape);
      if (!job.has_hosts() && Amount::get().all)
        FAIL() << "expected to mount a file system of our own; found that this is not allowed: run "
                  "this as root, where there is /dev/fuse";
      if (!job.has_hosts()) GTEST_SKIP() << "no FUSE here: storage that is seen late is not tested";
      job.look_from(1);
      body(job, chance);
    }
  }
};

// Returns the newest checkpoint that has been published.
std::string newest_of(const ChaosJob& job) {
  uint64_t most = 0;
  std::string newest;
  for (const std::string& name : job.checkpoints()) {
    const uint64_t step = std::stoull(name.substr(5));
    if (step >= most) newest = name;
    most = std::max(most, step);
  }
  return newest;
}

void expect_evaluated(const ChaosJob& job) {
  const Json evaluation = Document::load(job.storage() / "evaluations" /
                                         (std::to_string(steps_of(job.epochs())) + ".json"))
                              .value();
  EXPECT_TRUE(evaluation["final"].get<bool>()) << job.story();
}

TEST_P(LateTest, WhoStartsOnAnotherHostGoesOnFromTheNewestCheckpoint) {
  Shape shape;
  shape.ps = GetParam();
  repeat("late-all-" + std::to_string(GetParam()), shape, [](ChaosJob& job, Chance& chance) {
    job.start();
    const size_t seen = 1 + static_cast<size_t>(chance.uniform(0, 3));
    ASSERT_TRUE(job.wait_for_checkpoints(seen)) << job.story();
    if (chance.coin()) job.look_from(1);
    ASSERT_TRUE(job.wait_for_checkpoints(seen + 2)) << job.story();
    for (const Replica& replica : job.replicas()) {
      if (replica == kEvaluator) continue;
      job.signal(replica, SIGKILL);
      if (replica == kChief || chance.coin()) job.move(replica, 1);
    }
    const std::string newest = newest_of(job);
    const auto published = job.checkpoints();
    expect_undisturbed_end(job);
    EXPECT_THAT(job.log(kChief), testing::ContainsRegex("opened from [a-z/]*" + newest + "[^0-9]"))
        << job.story();
    const auto left = job.checkpoints();
    EXPECT_TRUE(std::ranges::includes(left, published)) << job.story();
    expect_evaluated(job);
  });
}

// A ps finds out from the storage alone that the job has ended.
TEST_P(LateTest, TheEndIsSeenOnTheOtherHost) {
  Shape shape;
  shape.ps = GetParam();
  repeat("late-end-" + std::to_string(GetParam()), shape, [](ChaosJob& job, Chance& chance) {
    for (const Replica& replica : job.replicas())
      if (replica != kChief) job.move(replica, chance.coin() ? 1 : 0);
    job.start();
    ASSERT_TRUE(job.wait_for_checkpoints(1 + static_cast<size_t>(chance.uniform(0, 6))));
    if (chance.coin()) job.look_from(1);
    expect_undisturbed_end(job);
    expect_evaluated(job);
  });
}

// The chief is woken while its host still believes that there is no generation but its own.
TEST_P(LateTest, AChiefThatWakesUpAfterAnotherHostTookItsPlacePublishesNothing) {
  Shape shape;
  shape.ps = GetParam();
  shape.relayed = true;
  repeat("late-chief-" + std::to_string(GetParam()), shape, [](ChaosJob& job, Chance& chance) {
    job.start();
    ASSERT_TRUE(job.wait_for_checkpoints(1 + static_cast<size_t>(chance.uniform(0, 3))));
    job.signal(kChief, SIGSTOP);
    job.look_from(0);
    const auto published = job.checkpoints();
    ASSERT_NO_THROW(job.run_for(static_cast<double>(Amount::get().pause.count())));
    job.move(kChief, 1);
    job.replace(kChief);
    ASSERT_TRUE(job.wait_for_checkpoints(published.size() + 1)) << job.story();
    EXPECT_EQ(job.wake_replaced(), kUnavailable) << job.story();
    expect_undisturbed_end(job);
    for (const std::string& name : job.checkpoints())
      EXPECT_TRUE(name.ends_with("-g1") == std::ranges::binary_search(published, name))
          << name << job.story();
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, LateTest, testing::Values(2, 0), [](const auto& info) {
  return std::string(info.param == 0 ? "collective" : "ps");
});

}  // namespace
}  // namespace muster::chaos
