#include "operator/plan/job_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/status.h"

namespace muster::plan {
namespace {

using testing::DoubleNear;

// A leading replica's process. It answers with what it has spent so far.
struct Process {
  ProcessLedger told;
  explicit Process(const char* name, int64_t first_step = 0) {
    told.process = name;
    told.use = TimeUse::starting;
    told.step = told.first_step = first_step;
  }
  Process& spends(TimeUse use, double seconds, int64_t steps = 0) {
    told.spent[use] += seconds;
    told.use = use;
    told.step += steps;
    return *this;
  }
  std::optional<ProcessLedger> answer(double age = 0) const {
    ProcessLedger answer = told;
    answer.age = age;
    return answer;
  }
  std::optional<ProcessLedger> last_answer() const {
    ProcessLedger answer = told;
    answer.final = true;
    return answer;
  }
};

TEST(JobLedger, CountsWhatTheClusterShowsAndThenWhatTheProcessTells) {
  JobLedger ledger;
  Process chief("a");
  ledger.advance(2, TimeUse::queued, {});
  ledger.advance(10, TimeUse::pulling, {});
  ledger.advance(5, TimeUse::starting, {});
  chief.spends(TimeUse::starting, 1).spends(TimeUse::computing, 3, 30);
  ledger.advance(4.5, TimeUse::starting, chief.answer());
  chief.spends(TimeUse::computing, 2, 20).spends(TimeUse::exporting, 1);
  ledger.advance(3, TimeUse::stopping, chief.last_answer());
  ledger.advance(0.5, TimeUse::stopping, {});
  const TimeSpent& spent = ledger.spent();
  EXPECT_EQ(spent[TimeUse::queued], 10);
  EXPECT_EQ(spent[TimeUse::pulling], 5);
  EXPECT_EQ(spent[TimeUse::starting], 2 + 1.5);
  EXPECT_EQ(spent[TimeUse::computing], 5);
  EXPECT_EQ(spent[TimeUse::exporting], 1);
  EXPECT_EQ(spent[TimeUse::stopping], 0.5);
  EXPECT_DOUBLE_EQ(spent.total(), 25);
}

TEST(JobLedger, AnAnswerCoversTheTimeUntilItWasGiven) {
  JobLedger ledger;
  Process chief("a");
  chief.spends(TimeUse::computing, 8, 80);
  ledger.advance(10, TimeUse::starting, chief.answer(2));
  EXPECT_EQ(ledger.spent()[TimeUse::computing], 8);
  EXPECT_DOUBLE_EQ(ledger.spent().total(), 8);
  ledger.advance(1, TimeUse::starting, chief.answer(3));  // the same answer, a second later
  EXPECT_DOUBLE_EQ(ledger.spent().total(), 8);
  chief.spends(TimeUse::computing, 3, 30);
  ledger.advance(1, TimeUse::starting, chief.answer(1));
  EXPECT_DOUBLE_EQ(ledger.spent()[TimeUse::computing], 11);
  // What status.goodput says has the whole time.
  EXPECT_DOUBLE_EQ(TimeSpent::of(ledger.json({})["seconds"]).total(), 12);
}

TEST(JobLedger, StepsThatWereLostAreComputedAgain) {
  JobLedger ledger;
  Process first("a");
  first.spends(TimeUse::computing, 10, 100);
  ledger.advance(10, TimeUse::starting, first.answer());
  // It is killed, and its successor begins with step 60.
  ledger.advance(1, TimeUse::lost, {});
  ledger.advance(2, TimeUse::lost, {});
  Process second("b", 60);
  second.spends(TimeUse::restoring, 1).spends(TimeUse::computing, 8, 80);
  ledger.advance(9, TimeUse::lost, second.answer());
  const TimeSpent& spent = ledger.spent();
  EXPECT_EQ(spent[TimeUse::lost], 2);
  EXPECT_EQ(spent[TimeUse::restoring], 1);
  EXPECT_DOUBLE_EQ(spent[TimeUse::recomputing], 4);  // 40 of 80 steps
  EXPECT_DOUBLE_EQ(spent[TimeUse::computing], 11 + 4);
  second.spends(TimeUse::computing, 1, 10);
  ledger.advance(1, TimeUse::lost, second.answer());
  EXPECT_DOUBLE_EQ(ledger.spent()[TimeUse::recomputing], 4);
}

TEST(JobLedger, BetweenTwoProcessesTheFirstWasLost) {
  for (const TimeUse use : {TimeUse::computing, TimeUse::joining, TimeUse::exporting}) {
    JobLedger ledger;
    Process first("a");
    first.spends(use, 10, 100);
    ledger.advance(10, TimeUse::starting, first.answer());
    Process second("b", 100);
    second.spends(TimeUse::restoring, 1);
    ledger.advance(3, TimeUse::starting, second.answer());
    EXPECT_EQ(ledger.spent()[TimeUse::lost], 2) << name_of(use);
  }
}

TEST(JobLedger, WhatHoldsTheGroupUpHasItsName) {
  for (const TimeUse use : {TimeUse::unschedulable, TimeUse::pulling, TimeUse::lost}) {
    JobLedger ledger;
    Process chief("a");
    chief.spends(TimeUse::joining, 5);
    ledger.advance(5, use, chief.answer());
    EXPECT_EQ(ledger.spent()[use], 5) << name_of(use);
    EXPECT_EQ(ledger.use(), use);
  }
  JobLedger ledger;
  Process chief("a");
  chief.spends(TimeUse::joining, 5);
  ledger.advance(5, TimeUse::starting, chief.answer());
  EXPECT_EQ(ledger.spent()[TimeUse::joining], 5);
}

TEST(JobLedger, AStepThatWaitsForALostReplicaIsLost) {
  for (const TimeUse part : {TimeUse::communication, TimeUse::slowest}) {
    JobLedger ledger;
    Process chief("a");
    chief.spends(part, 5, 10);
    ledger.advance(5, TimeUse::lost, chief.answer());
    EXPECT_EQ(ledger.spent()[part], 5) << "the chief makes steps: it misses nobody";
    EXPECT_EQ(ledger.use(), TimeUse::lost)
        << "what is written of a job that makes none from now on";
    chief.spends(part, 60);
    ledger.advance(60, TimeUse::lost, chief.answer());
    EXPECT_EQ(ledger.spent()[TimeUse::lost], 60) << name_of(part);
    EXPECT_EQ(ledger.use(), TimeUse::lost);
    chief.spends(part, 5);
    ledger.advance(5, TimeUse::starting, chief.answer());
    EXPECT_EQ(ledger.spent()[part], 5 + 5) << "all replicas are ready: a step takes long";
  }
}

TEST(JobLedger, WorkThatStandsStillHangs) {
  for (const TimeUse why : {TimeUse::hanging, TimeUse::storage}) {
    JobLedger ledger;
    Process chief("a");
    chief.spends(TimeUse::computing, 5);
    chief.told.stalled = why;
    ledger.advance(5, TimeUse::starting, chief.answer());
    EXPECT_EQ(ledger.spent()[why], 5);
    EXPECT_EQ(ledger.use(), why);
    chief.spends(TimeUse::computing, 5, 50);
    ledger.advance(5, TimeUse::starting, chief.answer());
    EXPECT_EQ(ledger.spent()[TimeUse::computing], 5);
    EXPECT_EQ(ledger.use(), TimeUse::computing);
  }
}

TEST(JobLedger, ASilentProcessTellsNothing) {
  JobLedger ledger;
  Process chief("a");
  chief.spends(TimeUse::computing, 5);
  ledger.advance(5, TimeUse::starting, chief.answer());
  ledger.advance(20, TimeUse::lost, chief.answer(20));
  ledger.advance(10, TimeUse::lost, chief.answer(30));
  EXPECT_EQ(ledger.spent()[TimeUse::computing], 25);
  EXPECT_EQ(ledger.spent()[TimeUse::lost], 10);
}

TEST(JobLedger, AProcessThatTellsMoreThanPassedDoesNotChangeTheSum) {
  JobLedger ledger;
  Process chief("a");
  chief.spends(TimeUse::computing, 300).spends(TimeUse::input, 100);
  ledger.advance(4, TimeUse::starting, chief.answer());
  EXPECT_DOUBLE_EQ(ledger.spent().total(), 4);
  EXPECT_DOUBLE_EQ(ledger.spent()[TimeUse::computing], 3);
  ledger.advance(-7, TimeUse::starting, chief.answer());  // a clock that was set back
  EXPECT_DOUBLE_EQ(ledger.spent().total(), 4);
}

TEST(JobLedger, AnotherOperatorGoesOnFromTheStatus) {
  JobLedger first;
  Process chief("a");
  chief.spends(TimeUse::computing, 10, 100);
  first.advance(12, TimeUse::starting, chief.answer());
  JobLedger second(first.json({}));
  EXPECT_EQ(second.spent(), first.spent());
  chief.spends(TimeUse::computing, 50, 500);
  second.advance(60, TimeUse::starting, chief.answer());
  EXPECT_EQ(second.spent()[TimeUse::computing], 60);
  EXPECT_EQ(second.spent()[TimeUse::unknown], 10);
  EXPECT_EQ(second.spent()[TimeUse::recomputing], 0);
  // The new operator may look at the job before it has asked the process.
  JobLedger third(second.json({}));
  third.advance(30, TimeUse::starting, {});
  chief.spends(TimeUse::computing, 32, 320);
  third.advance(2, TimeUse::starting, chief.answer());
  EXPECT_EQ(third.spent()[TimeUse::computing], 92);
  EXPECT_EQ(third.spent()[TimeUse::unknown], 10);
  // A process that has gone while nobody looked.
  JobLedger fourth(third.json({}));
  fourth.advance(30, TimeUse::lost, {});
  EXPECT_EQ(fourth.spent()[TimeUse::unknown], 10) << "it is not known yet";
  EXPECT_EQ(TimeSpent::of(fourth.json({})["seconds"])[TimeUse::unknown], 40);
  fourth.advance(20, TimeUse::lost, {});
  fourth.advance(5, TimeUse::lost, {});
  EXPECT_EQ(fourth.spent()[TimeUse::unknown], 10 + 30 + 20);
  EXPECT_EQ(fourth.spent()[TimeUse::lost], 5);
}

TEST(JobLedger, WhatAnotherOperatorLookedAtWentOnAsTheStatusSays) {
  JobLedger first;
  first.advance(5, TimeUse::pulling, {});
  first.advance(5, TimeUse::computing, {});
  JobLedger second(first.json({}), 3600);
  EXPECT_EQ(second.spent_after(3610)[TimeUse::computing], 3600);
  second.advance(3610, TimeUse::computing, {});
  EXPECT_EQ(second.spent()[TimeUse::computing], 3600);
  EXPECT_EQ(second.spent()[TimeUse::unknown], 10);
  second.advance(7, TimeUse::computing, {});
  EXPECT_EQ(second.spent()[TimeUse::computing], 3607);
  EXPECT_EQ(second.spent()[TimeUse::pulling], 5);
}

TEST(JobLedger, TellsTheShareOfStepsThatCount) {
  TimeSpent spent;
  EXPECT_EQ(share_of_steps(spent), std::nullopt);
  spent[TimeUse::queued] = 1000;
  spent[TimeUse::suspended] = 1000;
  EXPECT_EQ(share_of_steps(spent), std::nullopt);
  spent[TimeUse::computing] = 60;
  spent[TimeUse::communication] = 20;
  spent[TimeUse::recomputing] = 10;
  spent[TimeUse::pulling] = 10;
  EXPECT_THAT(*share_of_steps(spent), DoubleNear(0.8, 1e-9));
}

TEST(ProcessLedger, IsReadFromAnAnswer) {
  const Json answer = {
      {"step", 120},
      {"stepsHere", 20},
      {"ledger", {{"process", "a1"}, {"use", "input"}, {"seconds", {{"computing", 2.5}}}}}};
  const auto ledger = ProcessLedger::of(answer);
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->process, "a1");
  EXPECT_EQ(ledger->use, TimeUse::input);
  EXPECT_EQ(ledger->spent[TimeUse::computing], 2.5);
  EXPECT_EQ(ledger->step, 120);
  EXPECT_EQ(ledger->first_step, 100);
  EXPECT_FALSE(ledger->stalled);
}

TEST(ProcessLedger, IsAbsentFromAnyOtherAnswer) {
  for (const Json& answer :
       {Json(), Json("text"), Json{{"ledger", 3}}, Json{{"ledger", {{"process", 3}}}},
        Json{{"ledger", {{"process", std::string(1000, 'x')}}}}})
    EXPECT_EQ(ProcessLedger::of(answer), std::nullopt) << answer;
}

}  // namespace
}  // namespace muster::plan
