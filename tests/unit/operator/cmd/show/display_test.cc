#include "operator/cmd/show/display.h"

#include <gtest/gtest.h>

#include "operator/api/status.h"

namespace muster::cmd {
namespace {

// As mnist-mlp's in its last steps: 84 columns.
Json progress() {
  return {{"step", 1500},
          {"totalSteps", 1564},
          {"loss", "0.09169"},
          {"metrics", {{"accuracy", 0.9734}}},
          {"examplesPerSecond", 45881},
          {"etaSeconds", 2}};
}

TEST(ProgressLine, says_all_where_there_is_room) {
  EXPECT_EQ(progress_line({}, progress()),
            "step 1,500/1,564 (95%)  loss 0.09169  accuracy 0.9734  45,881 examples/s  0:02 left");
}

TEST(ProgressLine, gives_up_whole_fields_where_there_is_not_and_never_cuts_one) {
  const std::pair<size_t, const char*> cases[] = {
      {80, "step 1,500/1,564  loss 0.09169  accuracy 0.9734  45,881 examples/s  0:02 left"},
      {60, "step 1,500/1,564  loss 0.09169  accuracy 0.9734  0:02 left"},
      {50, "step 1,500/1,564  loss 0.09169  0:02 left"},
      {30, "step 1,500/1,564  0:02 left"},
      {16, "step 1,500/1,564"}};
  for (const auto& [width, line] : cases) EXPECT_EQ(progress_line({}, progress(), width), line);
}

TEST(ProgressLine, shows_a_loss_of_any_size_and_none_before_it_is_known) {
  const std::pair<Json, const char*> cases[] = {{"1.8e-07", "step 5  loss 1.8e-07"},
                                                {"0.1234567890", "step 5  loss 0.123457"},
                                                {"+Inf", "step 5  loss inf"},
                                                {"NaN", "step 5  loss nan"},
                                                {nullptr, "step 5"}};
  for (const auto& [loss, line] : cases) {
    EXPECT_EQ(progress_line({}, {{"step", 5}, {"loss", loss}}), line);
  }
}

TEST(ProgressLine, is_never_wider_than_what_there_is) {
  for (size_t width = 0; width < 100; ++width) {
    EXPECT_LE(progress_line({}, progress(), width).size(), width);
  }
}

TEST(ProgressLine, says_that_the_evaluator_is_waited_for) {
  api::TrainingJob job;
  api::Condition met;
  met.type = "SuccessCriteriaMet";
  met.status = true;
  job.status.conditions = {met};
  job.status.replica_statuses[api::Role::evaluator].succeeded = 1;
  EXPECT_EQ(progress_line(job, progress(), 16), "step 1,500/1,564");
  job.status.replica_statuses[api::Role::evaluator].active = 1;
  EXPECT_EQ(progress_line(job, progress()),
            "trained to step 1,500; the evaluator looks at the final checkpoint");
  EXPECT_EQ(progress_line(job, Json::object(), 200), "the evaluator has not finished yet");
}

TEST(GpusText, says_what_is_known_of_each_while_the_job_runs) {
  constexpr uint64_t kGibibyte = uint64_t{1} << 30;
  api::JobStatus status;
  status.progress = {
      {"step", 5},
      {"gpus",
       {{{"utilization", 0.934},
         {"memoryUsed", 2 * kGibibyte},
         {"memory", 80 * kGibibyte},
         {"watts", 411.6},
         {"memoryErrors", 0},
         {"celsius", 61},
         {"clockHertz", 1.98e9},
         {"xidErrors", 0},
         {"lastXid", 0}},
        Json::object(),
        {{"utilization", 0}, {"memoryErrors", 1}, {"xidErrors", 2}, {"lastXid", 79}}}}};
  EXPECT_EQ(gpus_text(status), "");
  api::Condition running;
  running.type = "Running";
  running.status = true;
  status.conditions = {running};
  EXPECT_EQ(gpus_text(status),
            "93 %, 2.0 of 80.0 GiB, 412 W, 61 °C; unknown; "
            "0 %, 2 errors, the newest is Xid 79, 1 memory error");
  status.progress.erase("gpus");
  EXPECT_EQ(gpus_text(status), "");
}

TEST(StragglerText, names_the_slowest_member_and_why_it_is_slow) {
  api::TrainingJob job;
  job.replicas[api::Role::worker].replicas = 3;
  const auto text = [&](int rank, double slowdown, double input) {
    job.status.progress = {{"metrics",
                            {{"stragglerRank", rank},
                             {"stragglerSlowdown", slowdown},
                             {"stragglerInputShare", input}}}};
    return straggler_text(job);
  };
  EXPECT_EQ(text(2, 3, 0.9), "") << "it does not run";
  job.status.conditions = {{"Running", true, "Running", "", {}}};
  EXPECT_EQ(text(2, 3, 0.9),
            "worker-2 takes 3.0 times as long as the median member: it waits for its data");
  EXPECT_EQ(text(2, 1.1, 0.9), "");
  job.replicas[api::Role::chief].replicas = 1;
  EXPECT_EQ(text(2, 1.75, 0.1),
            "worker-1 takes 1.8 times as long as the median member: it computes longer");
  EXPECT_EQ(text(0, 1.75, 0.1),
            "chief-0 takes 1.8 times as long as the median member: it computes longer");
  job.status.progress = Json();
  EXPECT_EQ(straggler_text(job), "");
}

TEST(ConditionsText, says_a_reason_once_and_what_conditions_share_once) {
  api::JobStatus status;
  status.conditions = {{"Accepted", true, "Valid", "the job can be run", {}},
                       {"Running", false, "Suspended", "the job is suspended", {}},
                       {"Suspended", true, "Suspended", "the job is suspended", {}},
                       {"Failed", true, "Deadline", "too late", {}},
                       {"Finished", true, "Deadline", "too late", {}}};
  EXPECT_EQ(conditions_text(status),
            "  Accepted (Valid): the job can be run\n"
            "  Suspended: the job is suspended\n"
            "  Failed, Finished (Deadline): too late\n");
}

TEST(TimeText, NamesTheUsesWithTheMostFirst) {
  api::JobStatus status;
  EXPECT_EQ(time_text(status), "");
  status.goodput = {{"seconds",
                     {{"computing", 710},
                      {"communication", 130},
                      {"pulling", 90},
                      {"starting", 40},
                      {"joining", 15},
                      {"input", 10},
                      {"exporting", 5}}},
                    {"use", "computing"},
                    {"until", "2026-01-02T03:04:05Z"}};
  EXPECT_EQ(time_text(status),
            "computing 71 %, communication 13 %, pulling 9 %, starting 4 %, joining 2 %, other 2 % "
            "of 16:40");
  const api::Time later = *api::parse_time("2026-01-02T03:20:45Z");
  EXPECT_EQ(time_text(status, later),
            "computing 86 %, communication 6 %, pulling 4 %, starting 2 %, joining 1 %, other 1 % "
            "of 33:20");
  status.completion_time = later;
  EXPECT_TRUE(time_text(status, later).ends_with(" of 16:40"));
}

}  // namespace
}  // namespace muster::cmd
