#include "trainer/loop/recorder.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "common/file.h"
#include "common/log.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/group/generations.h"
#include "trainer/loop/checkpointer.h"
#include "trainer/loop/local_synchronizer.h"

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
  EXPECT_THAT(text, ContainsRegex("step_seconds_bucket\\{.*le=\"0.01\"\\} 0\n"));
  EXPECT_THAT(text, ContainsRegex("step_seconds_bucket\\{.*le=\"0.03\"\\} 2\n"));
  EXPECT_THAT(text, ContainsRegex("step_seconds_count\\{.*\\} 4\n"));
  EXPECT_THAT(text, ContainsRegex("checkpoint_seconds_bucket\\{.*le=\"0.3\"\\} 1\n"));
  EXPECT_THAT(text, ContainsRegex("checkpoints_total\\{.*\\} 1\n"));
}

// A file stands where the folder of checkpoints should be.
TEST(CheckpointerTest, WarnsOfTheFirstFailureInARowAndCountsAll) {
  const auto folder = fresh_folder("checkpointer");
  const auto training = write_training(folder, "epochs: 1\n");
  Assembly assembly = assemble(Training::load(training), 1, false, {});
  group::open_generation(folder, 0);
  LocalSynchronizer synchronizer(assembly, nullptr, 1);
  write_file_atomically(folder / "checkpoints", "");
  checkpoint::Store store(folder / "checkpoints", 5);
  int failures = 0;
  Checkpointer::Options options;
  options.storage = folder;
  options.failed = [&] { ++failures; };
  setenv("MUSTER_LOG_FORMAT", "text", 1);
  testing::internal::CaptureStderr();
  log::initialize("test");
  {
    Checkpointer checkpointer(store, options);
    checkpointer.take(synchronizer, {});
    EXPECT_THROW(checkpointer.take_now(synchronizer, {}, false), WriteError);  // after the first
    checkpointer.take(synchronizer, {});
    EXPECT_THROW(checkpointer.take_now(synchronizer, {}, false), WriteError);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  unsetenv("MUSTER_LOG_FORMAT");
  EXPECT_EQ(failures, 2);
  EXPECT_THAT(log, AllOf(HasSubstr("warning test: no checkpoint of step 0; training goes on: "),
                         HasSubstr((folder / "checkpoints").string()),
                         HasSubstr("info test: no checkpoint of step 0, nor of the 1 before")));
  EXPECT_THAT(log, Not(HasSubstr("warning test: no checkpoint of step 0, nor")));
}

}  // namespace
}  // namespace muster::loop
