#include "operator/plan/describe.h"

#include <gtest/gtest.h>

#include "operator/api/disruption.h"
#include "tests/unit/operator/plan/builders.h"

namespace muster::plan {
namespace {

struct End {
  const char* name;
  Phase phase;
  std::optional<int> code;
  const char* reason;
  const char* last_line;
  const char* text;
  bool deleting = false;
};
class DescribeEnd : public testing::TestWithParam<End> {};

TEST_P(DescribeEnd, says_how_and_why) {
  ObservedReplica replica;
  replica.phase = GetParam().phase;
  replica.exit_code = GetParam().code;
  replica.reason = GetParam().reason;
  replica.last_line = GetParam().last_line;
  replica.deleting = GetParam().deleting;
  EXPECT_EQ(describe_end(make_job().workers(1), replica), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    Ends, DescribeEnd,
    testing::Values(
        End{"success", Phase::succeeded, 0, "", "bye", "worker-0 succeeded"},
        End{"error", Phase::failed, 73, "", "disk full",
            "worker-0 ended with exit code 73 (a directory cannot be written or a disk is full): "
            "\"disk full\""},
        End{"not_started",
            Phase::failed,
            {},
            "NotStarted",
            "cannot start sh: Too many open files",
            "worker-0 could not be started: \"cannot start sh: Too many open files\""},
        End{"killed_from_outside", Phase::failed, 137, "", "step 12",
            "worker-0 ended with exit code 137 (terminated (SIGKILL))"},
        End{"crashed", Phase::failed, 134, "", "assertion failed",
            "worker-0 ended with exit code 134 (terminated (SIGABRT)): \"assertion failed\""},
        End{"out_of_memory", Phase::failed, 137, "OOMKilled", "step 12",
            "worker-0 ended with exit code 137 (terminated (SIGKILL)), OOMKilled"},
        End{"runner_lost", Phase::failed, std::nullopt, api::kRunnerLost, "",
            "worker-0 was lost with the `muster run` that had started it"},
        End{"node_lost", Phase::failed, std::nullopt, "NodeLost", "",
            "worker-0 was lost with its node"},
        End{"deleted", Phase::failed, 143, "", "step 12",
            "worker-0 was deleted and ended with exit code 143 (terminated (SIGTERM))", true},
        End{"drained_and_asked", Phase::failed, 143, "Evicted", "step 12",
            "worker-0 was evicted and ended with exit code 143 (terminated (SIGTERM))", true},
        End{"drained_and_killed", Phase::failed, 137, "Evicted", "step 12",
            "worker-0 ended with exit code 137 (terminated (SIGKILL)), evicted", true},
        End{"preempted_and_asked", Phase::failed, 143, "Preempted", "step 12",
            "worker-0 was preempted and ended with exit code 143 (terminated (SIGTERM))", true},
        End{"preempted_before_it_ran", Phase::failed, std::nullopt, "Preempted", "",
            "worker-0 was preempted", true},
        End{"unknown", Phase::failed, std::nullopt, "", "", "worker-0 failed without an exit code"},
        End{"crash_loop", Phase::running, 1, "CrashLoopBackOff", "oops",
            "worker-0 keeps failing, last with exit code 1 (failed), CrashLoopBackOff: \"oops\""}),
    [](const auto& info) { return info.param.name; });

TEST(DescribeObstacle, HasTheWordsOfTheClusterCutAndOnOneLine) {
  ObservedReplica replica;
  replica.explanation = "nobody says why";
  EXPECT_EQ(describe_obstacle(replica), "");
  replica.reason = "Unschedulable";
  replica.explanation = "";
  EXPECT_EQ(describe_obstacle(replica), "Unschedulable");
  replica.explanation = "0/3 nodes\nare available";
  EXPECT_EQ(describe_obstacle(replica), "Unschedulable: 0/3 nodes?are available");
  replica.explanation = "image " + std::string(9000, 'a') + ": no such host";
  const std::string cut = describe_obstacle(replica);
  EXPECT_EQ(cut.size(), std::string("Unschedulable: ").size() + 512);
  EXPECT_TRUE(cut.starts_with("Unschedulable: image a")) << cut;
  EXPECT_TRUE(cut.ends_with("a: no such host")) << cut;
}

TEST(Bounded, LeavesAMessageAsItIsUnlessItIsTooLongOrMalformed) {
  EXPECT_EQ(bounded("two\nlines, \u00fc"), "two\nlines, \u00fc");
  EXPECT_EQ(bounded("half a letter \xc3"), "half a letter ?");
  EXPECT_EQ(bounded(std::string(4096, 'a')), std::string(4096, 'a'));
  const std::string cut = bounded("quota " + std::string(9000, 'a') + " exceeded");
  EXPECT_EQ(cut.size(), 4096u);
  EXPECT_TRUE(cut.starts_with("quota a")) << cut;
  EXPECT_TRUE(cut.ends_with("a exceeded")) << cut;
  EXPECT_EQ(bounded(cut), cut);
}

}  // namespace
}  // namespace muster::plan
