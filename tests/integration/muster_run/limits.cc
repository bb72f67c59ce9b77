#include <gmock/gmock.h>
#include <sys/resource.h>

#include "common/exit_code.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// How many descriptors each part of a run needs is not known, so that all numbers are tried: with
// the least of them no port can be looked for, with some no replica can be started.
TEST(MusterRun, names_the_limit_of_descriptors_whatever_it_keeps_from_being_done) {
  bool some_replica_was_not_started = false;
  constexpr uint64_t kEnough = 64;
  for (uint64_t most = 7; most <= kEnough; ++most) {
    SCOPED_TRACE(most);
    ScriptJob job(manifest({{"chief", script("exit 0")}}, "  runPolicy: {backoffLimit: 0}\n"));
    job.limit(RLIMIT_NOFILE, most);
    auto run = job.run();
    const int code = run->wait();
    if (code == kSuccess) break;
    EXPECT_LT(most, kEnough);
    EXPECT_THAT(code, AnyOf(kUnavailable, kCannotWrite)) << run->output();
    EXPECT_THAT(run->output(), HasSubstr("Too many open files (ulimit -n)"));
    if (run->output().find("muster: cannot start sh: Too many open files (ulimit -n)\n") !=
        std::string::npos) {
      some_replica_was_not_started = true;
      EXPECT_THAT(run->output(), HasSubstr("no restart is allowed (backoffLimit)"));
      EXPECT_EQ(code, kUnavailable);
      EXPECT_THAT(run->output(), HasSubstr("chief-0 could not be started"));
      EXPECT_TRUE(job.state()["replicas"][0]["exitCode"].is_null());
    }
  }
  EXPECT_TRUE(some_replica_was_not_started);
}

TEST(MusterRun, names_the_limit_of_files_that_are_too_large) {
  ScriptJob job(manifest({{"chief", script("exit 0")}}));
  job.limit(RLIMIT_FSIZE, 64);
  auto run = job.run();
  EXPECT_EQ(run->wait(), kCannotWrite) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("File too large (ulimit -f)"));
}

// How large the files of a run are is not known, so that many limits are tried: with some it begins
// and cannot go on.
TEST(MusterRun, does_not_wait_where_its_files_may_not_grow) {
  bool some_run_had_begun = false;
  constexpr uint64_t kEnough = 16384;
  for (uint64_t most = 256; most <= kEnough; most += 256) {
    SCOPED_TRACE(most);
    ScriptJob job(manifest({{"chief", script("exit 0")}}));
    job.limit(RLIMIT_FSIZE, most);
    auto run = job.run();
    const int code = run->wait();
    if (code == kSuccess) break;
    EXPECT_LT(most, kEnough);
    EXPECT_EQ(code, kCannotWrite) << run->output();
    EXPECT_THAT(run->output(), ContainsRegex("cannot write .*: File too large \\(ulimit -f\\)"));
    EXPECT_THAT(run->output(), Not(HasSubstr("will try again")));
    if (run->output().find("gave up on script: cannot write " + job.directory().string()) !=
        std::string::npos)
      some_run_had_begun = true;
  }
  EXPECT_TRUE(some_run_had_begun);
}

}  // namespace
}  // namespace muster::test
