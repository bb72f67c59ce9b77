#include "operator/kube/cluster/job_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/overview.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

const api::Time kNow{std::chrono::hours(24 * 365)};

api::JobStatus status_with(const std::string& condition, api::Time ended = kNow) {
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

JobStates::Job job(const std::string& name, const std::string& name_space = "lab") {
  return {"uid of " + name, name_space, name, kNow - 1min};
}

TEST(JobStates, CountsEachJobInItsLastState) {
  JobStates states;
  EXPECT_THAT(states.counts(), IsEmpty());
  states.note(job("a"), {}, kNow);
  states.note(job("b"), {}, kNow);
  states.note(job("c", "team"), {}, kNow);
  EXPECT_EQ(states.counts().at("lab").at("Pending"), 2);
  EXPECT_EQ(states.counts().at("team").at("Pending"), 1);
  EXPECT_EQ(states.counts().at("lab").at("Failed"), 0) << "it is there before the first one";
  states.note(job("a"), status_with("Running"), kNow);
  states.note(job("a"), status_with("Running"), kNow);
  EXPECT_EQ(states.counts().at("lab").at("Pending"), 1);
  EXPECT_EQ(states.counts().at("lab").at("Running"), 1);
  states.forget(job("b").uid);
  states.forget(job("b").uid);
  states.note(job("a"), status_with("Failed"), kNow);
  const auto counts = states.counts().at("lab");
  for (const auto& [state, jobs] : counts) EXPECT_EQ(jobs, state == "Failed" ? 1 : 0) << state;
  for (const char* state : api::kStateWords) EXPECT_TRUE(counts.contains(state)) << state;
  EXPECT_EQ(counts.size(), std::size(api::kStateWords));
  states.forget(job("c").uid);
  EXPECT_FALSE(states.counts().contains("team")) << "namespaces come and go";
}

TEST(JobStates, KnowWhoHasFinished) {
  JobStates states;
  api::JobStatus stopping = status_with("Succeeded");
  stopping.conditions.pop_back();
  states.note(job("a"), stopping, kNow);
  EXPECT_FALSE(states.is_finished(job("a").uid)) << "its replicas are stopped";
  states.note(job("a"), status_with("Succeeded"), kNow);
  EXPECT_TRUE(states.is_finished(job("a").uid));
  EXPECT_FALSE(states.is_finished(job("b").uid));
}

TEST(JobStates, ShowEachJobUntilAnHourAfterItsEnd) {
  JobStates states;
  states.note(job("runs"), status_with("Running"), kNow);
  states.note(job("ended long ago"), status_with("Failed", kNow - 2h), kNow);
  states.note(job("ends"), status_with("Failed"), kNow);
  EXPECT_THAT(states.views(kNow), SizeIs(2));
  states.note(job("ends"), status_with("Failed"), kNow + 30min);
  EXPECT_THAT(states.views(kNow + 59min), SizeIs(2));
  const auto left = states.views(kNow + 60min);
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left[0]->name, "runs");
  states.forget(job("runs").uid);
  EXPECT_THAT(states.views(kNow), IsEmpty()) << "they go with the job";
}

TEST(JobStates, AJobThatRunsAgainIsShownLongerThanItsEnd) {
  JobStates states;
  states.note(job("a"), status_with("Failed"), kNow);
  states.note(job("a"), status_with("Running"), kNow + 1min);
  ASSERT_THAT(states.views(kNow + 2h), SizeIs(1));
  EXPECT_EQ(states.views(kNow + 2h)[0]->state, "Running");
}

TEST(JobStates, ShowTheNewestEndsOnly) {
  JobStates states;
  for (size_t i = 0; i < JobStates::kMostEnds + 5; ++i)
    states.note(job(std::to_string(i)), status_with("Succeeded", kNow - 10min + i * 1ms), kNow);
  const auto views = states.views(kNow);
  EXPECT_THAT(views, SizeIs(JobStates::kMostEnds));
  for (const auto& view : views) EXPECT_GE(std::stoi(view->name), 5);
}

}  // namespace
}  // namespace muster::kube
