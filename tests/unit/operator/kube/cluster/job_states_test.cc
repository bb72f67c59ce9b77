#include "operator/kube/cluster/job_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/overview.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

const api::Time kNoted{std::chrono::hours(24 * 365)};

api::JobStatus status_with(const std::string& condition, api::Time ended = kNoted) {
  api::JobStatus status;
  for (const std::string& type : {condition, std::string("Finished")}) {
    if (type == "Finished" && condition == "Running") continue;
    api::Condition known;
    known.type = type;
    known.status = true;
    known.reason = "Why";
    status.conditions.push_back(known);
  }
  status.completion_time = ended;
  return status;
}

JobStates::Job job_named(const std::string& name, const std::string& name_space = "lab") {
  return {"uid of " + name, name_space, name, kNoted - 1min};
}

TEST(JobStates, CountsEachJobInItsLastState) {
  JobStates states;
  EXPECT_THAT(states.counts(), IsEmpty());
  states.note(job_named("a"), {}, kNoted);
  states.note(job_named("b"), {}, kNoted);
  states.note(job_named("c", "team"), {}, kNoted);
  EXPECT_EQ(states.counts().at("lab").at("Pending"), 2);
  EXPECT_EQ(states.counts().at("team").at("Pending"), 1);
  EXPECT_EQ(states.counts().at("lab").at("Failed"), 0) << "it is there before the first one";
  states.note(job_named("a"), status_with("Running"), kNoted);
  states.note(job_named("a"), status_with("Running"), kNoted);
  EXPECT_EQ(states.counts().at("lab").at("Pending"), 1);
  EXPECT_EQ(states.counts().at("lab").at("Running"), 1);
  states.forget(job_named("b").uid);
  states.forget(job_named("b").uid);
  states.note(job_named("a"), status_with("Failed"), kNoted);
  const auto counts = states.counts().at("lab");
  for (const auto& [state, jobs] : counts) EXPECT_EQ(jobs, state == "Failed" ? 1 : 0) << state;
  for (const char* state : api::kStateWords) EXPECT_TRUE(counts.contains(state)) << state;
  EXPECT_EQ(counts.size(), std::size(api::kStateWords));
  states.forget(job_named("c").uid);
  EXPECT_FALSE(states.counts().contains("team")) << "namespaces come and go";
}

TEST(JobStates, KnowWhoHasFinished) {
  JobStates states;
  api::JobStatus stopping = status_with("Succeeded");
  stopping.conditions.pop_back();
  states.note(job_named("a"), stopping, kNoted);
  EXPECT_FALSE(states.is_finished(job_named("a").uid)) << "its replicas are stopped";
  states.note(job_named("a"), status_with("Succeeded"), kNoted);
  EXPECT_TRUE(states.is_finished(job_named("a").uid));
  EXPECT_FALSE(states.is_finished(job_named("b").uid));
}

TEST(JobStates, ShowEachJobUntilAnHourAfterItsEnd) {
  JobStates states;
  states.note(job_named("runs"), status_with("Running"), kNoted);
  states.note(job_named("ended long ago"), status_with("Failed", kNoted - 2h), kNoted);
  states.note(job_named("ends"), status_with("Failed"), kNoted);
  EXPECT_THAT(states.views(kNoted), SizeIs(2));
  states.note(job_named("ends"), status_with("Failed"), kNoted + 30min);
  EXPECT_THAT(states.views(kNoted + 59min), SizeIs(2));
  const auto left = states.views(kNoted + 60min);
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left[0]->name, "runs");
  states.forget(job_named("runs").uid);
  EXPECT_THAT(states.views(kNoted), IsEmpty()) << "they go with the job";
}

TEST(JobStates, AJobThatRunsAgainIsShownLongerThanItsEnd) {
  JobStates states;
  states.note(job_named("a"), status_with("Failed"), kNoted);
  states.note(job_named("a"), status_with("Running"), kNoted + 1min);
  ASSERT_THAT(states.views(kNoted + 2h), SizeIs(1));
  EXPECT_EQ(states.views(kNoted + 2h)[0]->state, "Running");
}

TEST(JobStates, ShowTheNewestEndsOnly) {
  JobStates states;
  for (size_t i = 0; i < JobStates::kMostEnds + 5; ++i)
    states.note(job_named(std::to_string(i)), status_with("Succeeded", kNoted - 10min + i * 1ms),
                kNoted);
  const auto views = states.views(kNoted);
  EXPECT_THAT(views, SizeIs(JobStates::kMostEnds));
  for (const auto& view : views) EXPECT_GE(std::stoi(view->name), 5);
}

}  // namespace
}  // namespace muster::kube
