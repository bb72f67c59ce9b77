#include <gtest/gtest.h>

#include "tests/chaos/chaos_job.h"

namespace muster::chaos {
namespace {

struct Hanging {
  const char* role;
  int ps;
};

class HangTest : public testing::TestWithParam<Hanging> {};

// Its process lives, answers and sends heartbeats: only its training stands still.
TEST_P(HangTest, AThreadThatHangsIsNamedAndItsProcessIsReplacedAtNoCostOfBits) {
  const std::string role = GetParam().role;
  Chance chance;
  Shape shape;
  shape.ps = GetParam().ps;
  shape.hang_seconds = 2;
  ChaosJob job((shape.ps == 0 ? "hang-collective-" : "hang-") + role, chance, shape);
  job.start();
  const Replica replica = chance.one_of(job.of(role));
  ASSERT_TRUE(job.wait_for_checkpoints(1 + static_cast<size_t>(chance.uniform(0, 3))));
  job.hang(replica);
  EXPECT_TRUE(job.wait_for_log(replica, "has given no sign of life for "))
      << job.log(replica) << job.story();
  EXPECT_TRUE(job.wait_for_log(replica, "hangs: this process ends"))
      << job.log(replica) << job.story();
  expect_undisturbed_end(job);
  EXPECT_EQ(job.starts(replica), 2) << job.story();
  for (const Replica& other : job.replicas())
    if (other != replica) {
      EXPECT_EQ(job.starts(other), 1) << other.first << job.story();
    }
}

INSTANTIATE_TEST_SUITE_P(Roles, HangTest,
                         testing::Values(Hanging{"chief", 2}, Hanging{"worker", 2},
                                         Hanging{"chief", 0}, Hanging{"worker", 0}),
                         [](const auto& info) {
                           const std::string role = info.param.role;
                           return info.param.ps == 0 ? "collective_" + role : role;
                         });

// Training waits for the storage at its end only, and nobody is restarted for it.
TEST(HangTest, StorageThatHangsIsNamedAndNobodyIsReplaced) {
  Chance chance;
  Shape shape;
  shape.faulty = true;
  shape.hang_seconds = 2;
  ChaosJob job("hang-storage", chance, shape);
  job.start();
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  job.storage_does("stall");
  EXPECT_TRUE(job.wait_for_log(kChief, "has given no sign of life for "))
      << job.log(kChief) << job.story();
  ASSERT_NO_THROW(job.run_for(8));
  job.storage_does("");
  expect_undisturbed_end(job);
  for (const Replica& replica : job.replicas())
    EXPECT_EQ(job.starts(replica), 1) << replica.first << job.story();
}

}  // namespace
}  // namespace muster::chaos
