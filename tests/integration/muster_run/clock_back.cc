#include <gmock/gmock.h>
#include <signal.h>

#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

constexpr int kInterrupted = 128 + SIGINT;

// A job whose wall clock the test sets (tests/chaos/wall_clock.cc).
class ClockBack {
 public:
  explicit ClockBack(const std::string& manifest)
      : job_(manifest), clock_(job_.folder() / "clock") {
    write_file_atomically(clock_, "0");
    job_.set("LD_PRELOAD", MUSTER_WALL_CLOCK);
    job_.set("MUSTER_WALL_CLOCK", clock_.string());
    job_.set("ASAN_OPTIONS", "verify_asan_link_order=0");
  }
  ScriptJob& job() { return job_; }
  void set_back_by_two_hours() { write_file_atomically(clock_, "-7200"); }

 private:
  ScriptJob job_;
  const std::filesystem::path clock_;
};

TEST(MusterRun, shows_progress_when_the_clock_is_set_back) {
  ClockBack test(manifest({{"chief", "{replicas: 1}"}}, R"(  training:
    model: {name: linear-regression}
    data: {train: {syntheticLinear: {samples: 1000}}}
    batchSize: 10
    steps: 1000000000
)"));
  auto run = test.job().run();
  run->await_output(" step ");
  test.set_back_by_two_hours();
  const size_t seen = run->output().size();
  while (run->output().find(" step ", seen) == std::string::npos) run->await_more();
  run->signal(SIGINT);
  EXPECT_EQ(run->wait(), kInterrupted) << run->output();
}

TEST(MusterRun, keeps_to_its_deadline_when_the_clock_is_set_back) {
  ClockBack test(
      manifest({{"chief", script("echo started > $EVENTS; while :; do sleep 0.1; done")}},
               "  runPolicy: {activeDeadlineSeconds: 3}\n"));
  auto run = test.job().run();
  EXPECT_EQ(test.job().next_event(), "started");
  test.set_back_by_two_hours();
  run->await_output("DeadlineExceeded");
  EXPECT_EQ(run->wait(), kDeadline) << run->output();
}

}  // namespace
}  // namespace muster::test
