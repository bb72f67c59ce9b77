#include "trainer/loop/recorder.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <functional>

#include "common/program/log.h"
#include "common/program/stopwatch.h"
#include "common/program/time_ledger.h"
#include "common/system/file.h"
#include "tests/unit/trainer/compute/sums.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/folder/generations.h"
#include "trainer/loop/checkpointer.h"
#include "trainer/loop/synchronizers/local_synchronizer.h"

namespace muster::loop {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(RecorderTest, CountsStepsByTheirSeconds) {
  metrics::Reporter reporter("", "chief", 0);
  Recorder recorder({}, reporter, nullptr);
  checkpoint::Position position;
  recorder.begin(position, 100, 1);
  auto now = Recorder::Clock::now();
  for (const int milliseconds : {2000, 20, 20, 2000}) {
    ++position.step;
    now += std::chrono::milliseconds(milliseconds);
    recorder.step(position, {}, now);
  }
  recorder.end(position);
  recorder.checkpoint_published(4, 0.2);
  const std::string text = reporter.metrics_text();
  EXPECT_THAT(text, ContainsRegex("step_seconds_bucket\\{.*le=\"0.015625\"\\} 0\n"));
  EXPECT_THAT(text, ContainsRegex("step_seconds_bucket\\{.*le=\"0.03125\"\\} 2\n"));
  EXPECT_THAT(text, ContainsRegex("step_seconds_count\\{.*\\} 4\n"));
  EXPECT_THAT(text, ContainsRegex("checkpoint_seconds_bucket\\{.*le=\"0.25\"\\} 1\n"));
  EXPECT_THAT(text, ContainsRegex("checkpoints_total\\{.*\\} 1\n"));
}

constexpr std::chrono::milliseconds kStep(100);

// So many steps of 10 examples each, 100 ms apart, all of epoch 0.
void take_steps(Recorder& recorder, checkpoint::Position& position, int steps) {
  const compute::LossSums sums = compute::testing::classified(5.0, 0, 10);
  auto now = Recorder::Clock::now();
  for (int i = 0; i < steps; ++i) {
    ++position.step;
    position.sums.add(position.epoch, sums);
    recorder.step(position, sums, now += kStep);
  }
}

TEST(RecorderTest, ShowsHowLongTrainingHasWaitedForItsInput) {
  metrics::Reporter reporter("", "chief", 0);
  Recorder recorder({}, reporter, nullptr);
  double waited = 0.25;
  recorder.measure_input_wait([&] { return waited; });
  checkpoint::Position position;
  recorder.begin(position, 100, 1);
  take_steps(recorder, position, 10);
  EXPECT_EQ(reporter.snapshot().input_wait_seconds, 0.25);
  waited = 1.5;
  recorder.end(position);
  EXPECT_EQ(reporter.snapshot().input_wait_seconds, 1.5);
  EXPECT_THAT(reporter.metrics_text(),
              ContainsRegex("muster_trainer_input_wait_seconds_total\\{.*\\} 1.5\n"));
}

TEST(RecorderTest, SplitsStepsByTheLedgerOfItsThread) {
  TimeLedger ledger;
  metrics::Reporter reporter("", "chief", 0);
  Recorder recorder({}, reporter, nullptr);
  double waited = 0;
  recorder.measure_input_wait([&] { return waited; });
  checkpoint::Position position;
  const Spending training(TimeUse::computing);
  recorder.begin(position, 100, 1);
  for (int step = 0; step < 2; ++step) {
    const Stopwatch lasts;
    while (lasts.seconds() < 0.002) {
    }
    waited += 0.001;
    ++position.step;
    recorder.step(position, {}, Recorder::Clock::now(), {.update_seconds = 1e-5, .bytes = 1000});
  }
  recorder.end(position);
  const std::string text = reporter.metrics_text();
  EXPECT_THAT(text, ContainsRegex("step_part_seconds_count\\{.*part=\"compute\".*\\} 2\n"));
  EXPECT_THAT(text, ContainsRegex("step_part_seconds_count\\{.*part=\"input\".*\\} 2\n"));
  EXPECT_THAT(text, ContainsRegex("step_part_seconds_sum\\{.*part=\"input\".*\\} 0.002"));
  EXPECT_THAT(text, ContainsRegex("step_part_seconds_count\\{.*part=\"update\".*\\} 2\n"));
  EXPECT_THAT(text, ContainsRegex("step_part_seconds_count\\{.*part=\"slowest\".*\\} 0\n"));
  EXPECT_THAT(text, ContainsRegex("exchanged_bytes_total\\{.*\\} 2000\n"));
}

// Async: of three steps of the group two are others'.
TEST(RecorderTest, TheTimeLeftIsThatOfTheGroupsSteps) {
  metrics::Reporter reporter("", "chief", 0);
  Recorder recorder({}, reporter, nullptr);
  checkpoint::Position position;
  position.step = 1000;
  recorder.begin(position, 2000, 1);
  EXPECT_LT(reporter.snapshot().eta_seconds, 0);
  auto now = Recorder::Clock::now();
  for (int i = 0; i < 100; ++i) {
    position.step += 3;
    recorder.step(position, compute::testing::classified(5.0, 0, 30), now += kStep);
  }
  // The last report may be two steps old.
  EXPECT_NEAR(reporter.snapshot().eta_seconds, 700 / 30.0, 0.5);
}

TEST(RecorderTest, RatesAreOfTheStepsAndTheTimeOfTheSameProcesses) {
  metrics::Reporter reporter("", "chief", 0);
  Recorder recorder({}, reporter, nullptr);
  EXPECT_TRUE(recorder.examples_per_second().is_null());
  recorder.restore({{"trainSeconds", 10.0}, {"examples", 1000}, {"steps", 100}});
  checkpoint::Position position;
  position.step = 120;  // twenty of a process that is gone
  recorder.begin(position, 120, 2);
  EXPECT_NEAR(recorder.examples_per_second().get<double>(), 100, 0.1);
  EXPECT_NEAR(reporter.snapshot().examples_per_second, 100, 0.1);
  take_steps(recorder, position, 100);
  EXPECT_NEAR(recorder.examples_per_second().get<double>(), 2000 / 20.0, 0.1);
  EXPECT_NEAR(recorder.steps_per_second().get<double>(), 200 / 20.0, 0.1);
  const Json state = recorder.state(position);
  EXPECT_EQ(state["examples"], 2000);
  EXPECT_EQ(state["steps"], 200);
}

// What `work` logs, as text.
std::string log_of(const std::function<void()>& work) {
  setenv("MUSTER_LOG_FORMAT", "text", 1);
  testing::internal::CaptureStderr();
  log::initialize("test");
  work();
  unsetenv("MUSTER_LOG_FORMAT");
  return testing::internal::GetCapturedStderr();
}

// The epoch's losses are its steps', whichever process took them.
TEST(RecorderTest, SaysOverWhatAMeanIs) {
  metrics::Reporter reporter("", "chief", 0);
  const std::string log = log_of([&] {
    Recorder recorder({}, reporter, nullptr);
    checkpoint::Position position;
    position.step = 3;
    position.sums.add(0, compute::testing::classified(100.0, 0, 10));
    recorder.begin(position, 6, 1);
    take_steps(recorder, position, 1);
    position.epoch = 1;
    take_steps(recorder, position, 2);
    recorder.end(position);
    EXPECT_EQ(position.sums.last_whole(position.epoch).loss, 100.0 + 5.0);
    EXPECT_EQ(position.sums.last_whole(position.epoch).rows, 20);
  });
  EXPECT_THAT(log, HasSubstr("epoch 1 done at step 5: whole epoch: cost 5.2500"));
  EXPECT_THAT(log, testing::Not(HasSubstr(" 0.00 ms per batch")));
  EXPECT_THAT(log, HasSubstr("step 6 of 6: last 1 steps: cost 0.5000"));
}

// It died before it could say so.
TEST(RecorderTest, TellsTheEpochThatEndedWhileNobodyWasThere) {
  metrics::Reporter reporter("", "chief", 0);
  const std::string log = log_of([&] {
    Recorder recorder({}, reporter, nullptr);
    checkpoint::Position position;
    position.step = 3;
    position.epoch = 1;
    position.sums.add(0, compute::testing::classified(10.0, 0, 10));
    recorder.begin(position, 3, 1);
    recorder.end(position);
  });
  EXPECT_THAT(log, HasSubstr("epoch 1 done at step 3: whole epoch: cost 1.0000"));
  EXPECT_EQ(reporter.snapshot().loss, 1.0);
}

TEST(RecorderTest, AnEpochThatEndedBeforeWeCameDidNotEndWhereWeGoOn) {
  metrics::Reporter reporter("", "chief", 0);
  const std::string log = log_of([&] {
    Recorder recorder({}, reporter, nullptr);
    checkpoint::Position position;
    position.step = 5;
    position.epoch = 1;
    position.next_batch = 2;
    position.sums.add(0, compute::testing::classified(10.0, 0, 10));
    recorder.begin(position, 6, 1);
  });
  EXPECT_THAT(log, HasSubstr("epoch 1 done before step 5: whole epoch: cost 1.0000"));
}

TEST(RecorderTest, AnEvaluationIsNoTimeOfTheTraining) {
  metrics::Reporter reporter("", "chief", 0);
  Recorder recorder({}, reporter, nullptr);
  checkpoint::Position position;
  recorder.begin(position, 2, 1);
  auto now = Recorder::Clock::now();
  ++position.step;
  recorder.step(position, compute::testing::classified(5.0, 0, 10), now += kStep);
  const double before = recorder.train_seconds();
  recorder.validated(position, {{"loss", 0.5}, {"accuracy", 0.75}, {"balancedAccuracy", 0.25}},
                     std::chrono::seconds(60));
  EXPECT_NEAR(recorder.train_seconds(), before, 1e-6);
  const auto metrics = reporter.snapshot().validation;
  EXPECT_EQ(metrics.at("loss"), 0.5);
  EXPECT_EQ(metrics.at("accuracy"), 0.75);
  EXPECT_EQ(metrics.at("balancedAccuracy"), 0.25);
  ++position.step;
  recorder.step(position, compute::testing::classified(5.0, 0, 10),
                now += std::chrono::seconds(60) + kStep);
  recorder.end(position);
  EXPECT_NEAR(recorder.train_seconds() - before, 0.1, 1e-6);
  EXPECT_THAT(reporter.metrics_text(), ContainsRegex("step_seconds_bucket\\{.*le=\"0.25\"\\} 2\n"));
}

// At the speed that is set it would take weeks.
TEST(CheckpointerTest, WhatSomebodyWaitsForIsNotWrittenSlowly) {
  const auto folder = fresh_folder("hurried");
  Assembly assembly = assemble(Training::load(write_training(folder, "epochs: 1\n")), 1, false, {});
  folder::open_generation(folder, 0);
  LocalSynchronizer synchronizer(assembly, nullptr, 1);
  checkpoint::Store store(folder / "checkpoints", 5);
  Checkpointer::Options options;
  options.storage = folder;
  options.when.bytes_per_second = 0.01;
  options.manifest.generation = 1;
  Checkpointer checkpointer(store, options);
  checkpointer.take(synchronizer, {});
  EXPECT_EQ(checkpointer.newest(), "ckpt-0-g1");
}

// Takes checkpoints of a small training in a folder of its own, and notes which requests they meet.
class RequestTest : public testing::Test {
 protected:
  RequestTest()
      : folder_(fresh_folder("requests")),
        assembly_(assemble(Training::load(write_training(folder_, "epochs: 1\n")), 1, false, {})),
        synchronizer_(assembly_, nullptr, (folder::open_generation(folder_, 0), 1)),
        store_(folder_ / "checkpoints", 5) {
    Checkpointer::Options options;
    options.storage = folder_;
    options.met = [this](const std::string& name, const checkpoint::Store::Found& found) {
      met_.push_back(name + " by " + found.directory.filename().string());
    };
    checkpointer_.emplace(store_, options);
    checkpointer_->begin(synchronizer_.position(), Checkpointer::Clock::now());
  }

  bool due() const { return checkpointer_->due(synchronizer_.position(), {}); }
  // Returns the request that the newest checkpoint names.
  std::string take() {
    checkpointer_->take(synchronizer_, {});
    checkpointer_->newest();
    const auto newest = store_.newest();
    return newest ? newest->manifest.request : "";
  }

  std::filesystem::path folder_;
  Assembly assembly_;
  LocalSynchronizer synchronizer_;
  checkpoint::Store store_;
  std::vector<std::string> met_;
  std::optional<Checkpointer> checkpointer_;  // last: it uses all others
};

TEST_F(RequestTest, IsMetByTheNextCheckpointAndNamedByAllThatFollow) {
  EXPECT_FALSE(due());
  checkpointer_->request("first");
  EXPECT_TRUE(due());
  EXPECT_EQ(take(), "first");
  EXPECT_THAT(met_, testing::ElementsAre("first by ckpt-0-g1"));
  checkpointer_->request("first");
  EXPECT_FALSE(due());
  synchronizer_.step();
  EXPECT_EQ(take(), "first");
  checkpointer_->request("second");
  EXPECT_TRUE(due());
  synchronizer_.step();
  EXPECT_EQ(take(), "second");
  EXPECT_THAT(met_, testing::ElementsAre("first by ckpt-0-g1", "second by ckpt-2-g1"));
}

TEST_F(RequestTest, IsTakenAgainOnlyIfItsCheckpointCouldNotBeWritten) {
  write_file_atomically(folder_ / "checkpoints", "");
  checkpointer_->request("first");
  checkpointer_->take(synchronizer_, {});
  EXPECT_THROW(checkpointer_->take_now(synchronizer_, {}, {}), WriteError);  // after the first
  EXPECT_FALSE(due()) << "a disk that is full must not be tried with each step";
  std::filesystem::remove(folder_ / "checkpoints");
  checkpointer_->request("first");
  EXPECT_TRUE(due());
  EXPECT_EQ(take(), "first");
  EXPECT_THAT(met_, testing::ElementsAre("first by ckpt-0-g1"));
}

TEST_F(RequestTest, ThatWasMetBeforeIsNoRequest) {
  checkpointer_->met_before("first");
  checkpointer_->request("first");
  EXPECT_FALSE(due());
  EXPECT_EQ(take(), "first");
  EXPECT_THAT(met_, testing::IsEmpty());
  checkpointer_->request("second");
  EXPECT_TRUE(due());
}

// A file stands where the folder of checkpoints should be.
TEST(CheckpointerTest, WarnsOfTheFirstFailureInARowAndCountsAll) {
  const auto folder = fresh_folder("checkpointer");
  const auto training = write_training(folder, "epochs: 1\n");
  Assembly assembly = assemble(Training::load(training), 1, false, {});
  folder::open_generation(folder, 0);
  LocalSynchronizer synchronizer(assembly, nullptr, 1);
  write_file_atomically(folder / "checkpoints", "");
  checkpoint::Store store(folder / "checkpoints", 5);
  int failures = 0;
  Checkpointer::Options options;
  options.storage = folder;
  options.failed = [&] { ++failures; };
  const std::string log = log_of([&] {
    Checkpointer checkpointer(store, options);
    checkpointer.take(synchronizer, {});
    EXPECT_THROW(checkpointer.take_now(synchronizer, {}, {}), WriteError);  // after the first
    ASSERT_EQ(current_stalls().size(), 1u) << "it is shown where hangs are";
    EXPECT_EQ(current_stalls()[0].kind, WatchedWork::Kind::storage);
    EXPECT_THAT(current_stalls()[0].doing,
                AllOf(HasSubstr("no checkpoint since step 0; training goes on: "),
                      HasSubstr((folder / "checkpoints").string())));
    checkpointer.take(synchronizer, {});
    EXPECT_THROW(checkpointer.take_now(synchronizer, {}, {}), WriteError);
  });
  EXPECT_EQ(failures, 2);
  EXPECT_TRUE(current_stalls().empty());
  EXPECT_THAT(log, AllOf(HasSubstr("warning test: no checkpoint of step 0; training goes on: "),
                         HasSubstr((folder / "checkpoints").string()),
                         HasSubstr("info test: no checkpoint of step 0, nor of the 1 before")));
  EXPECT_THAT(log, Not(HasSubstr("warning test: no checkpoint of step 0, nor")));
}

// A detector whose images of these steps have no object.
TEST(RecorderTest, ReportsNoLossWhereThereIsNothingToMeasure) {
  metrics::Reporter reporter("", "chief", 0);
  Recorder::Options options;
  options.loss = compute::SsdLoss{};
  options.summary_every_steps = 1;
  Recorder recorder(options, reporter, nullptr);
  checkpoint::Position position;
  recorder.begin(position, 100, 1);
  compute::LossSums sums;
  sums.rows = 2;
  position.step = 1;
  position.sums.add(0, sums);
  recorder.step(position, sums, Recorder::Clock::now() + kStep * 10);
  EXPECT_FALSE(reporter.snapshot().loss);
  EXPECT_FALSE(recorder.state(position).contains("loss"));
}

}  // namespace
}  // namespace muster::loop
