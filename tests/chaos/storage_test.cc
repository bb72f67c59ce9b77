#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <iostream>

#include "common/system/file.h"
#include "tests/chaos/chaos_job.h"
#include "tests/chaos/small_disk.h"

namespace muster::chaos {
namespace {

namespace fs = std::filesystem;

void repeat(const std::function<void(Chance&)>& body) {
  Undisturbed::get();
  for (int run = 0; run < Amount::get().few() && !testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    Chance chance(run);
    body(chance);
  }
}

double duration() {
  return Undisturbed::get().seconds;
}

TEST(StorageTest, ADiskThatIsFullForAWhileCostsNoBit) {
  repeat([](Chance& chance) {
    ChaosJob job("full-disk", chance);
    SmallDisk disk(job.storage());
    if (!disk.mounted() && Amount::get().all)
      FAIL()
          << "expected a mount namespace of our own, for a disk that can be full; found none: run "
             "this as root, or where others may have user namespaces";
    if (!disk.mounted())
      GTEST_SKIP() << "no mount namespace here: FaultTest's CallsThatNeedRoom does it without";
    job.start();
    ASSERT_NO_THROW(job.run_for(chance.uniform(0, 1) * duration()));
    disk.fill();
    ASSERT_NO_THROW(job.run_for(chance.uniform(0, 1) * duration()));
    if (chance.coin()) job.signal(chance.one_of(job.replicas()), SIGKILL);
    ASSERT_NO_THROW(job.run_for(chance.uniform(0.5, 1) * duration()));
    disk.make_room();
    expect_undisturbed_end(job);
  });
}

struct Fault {
  const char* name;
  const char* mode;
  double longest;  // in durations of an undisturbed job; 0: MUSTER_CHAOS_PAUSE, at most 20 s
};

class FaultTest : public testing::TestWithParam<Fault> {};

TEST_P(FaultTest, ForAWhileCostsNoBitWhoeverIsKilledMeanwhile) {
  const Fault& fault = GetParam();
  repeat([&](Chance& chance) {
    Shape shape;
    shape.faulty = true;
    ChaosJob job(std::string("storage-") + fault.name, chance, shape);
    job.start();
    ASSERT_NO_THROW(job.run_for(chance.uniform(0, 0.9) * duration()));
    job.storage_does(fault.mode);
    ASSERT_NO_THROW(job.run_for(chance.uniform(0, 0.5) * duration()));
    if (chance.coin() && !job.finished()) job.signal(chance.one_of(job.replicas()), SIGKILL);
    const auto longest = std::min<double>(20, static_cast<double>(Amount::get().pause.count()));
    ASSERT_NO_THROW(job.run_for(
        fault.longest > 0 ? chance.uniform(0.3, 1) * fault.longest * duration() : longest));
    job.storage_does("");
    expect_undisturbed_end(job);
  });
}

INSTANTIATE_TEST_SUITE_P(Storage, FaultTest,
                         testing::Values(Fault{"CallsThatNeedRoom", "full", 1},
                                         Fault{"EveryCallFails", "fail 100", 1},
                                         Fault{"SomeCallsFail", "fail 20", 2},
                                         Fault{"FewCallsFail", "fail 2", 3},
                                         Fault{"CallsStall", "stall", 0}),
                         [](const auto& info) { return std::string(info.param.name); });

// What the chief writes when, by what is in its path. Of the first it is told by killing a ps.
struct Moment {
  const char* name;
  const char* part;
  bool recovering;
};

class FullAtTest : public testing::TestWithParam<Moment> {};

TEST_P(FullAtTest, TheChiefWaitsForRoomAndGoesOn) {
  const Moment& moment = GetParam();
  Chance chance;
  Shape shape;
  shape.faulty = true;
  ChaosJob job(std::string("full-at-") + moment.name, chance, shape);
  const std::string full = std::string("full ") + moment.part;
  if (!moment.recovering) job.storage_does(full);
  job.start();
  if (moment.recovering) {
    ASSERT_TRUE(job.wait_for_checkpoints(1));
    job.storage_does(full);
    job.signal({"ps", 0}, SIGKILL);
  }
  ASSERT_TRUE(job.wait_for_log(kChief, "waiting for the storage"))
      << job.log(kChief) << job.story();
  job.storage_does("");
  expect_undisturbed_end(job);
  EXPECT_EQ(job.starts(kChief), 1) << job.story();
  const std::string log = job.log(kChief);
  EXPECT_NE(log.find("the storage can be written again"), std::string::npos);
  if (!moment.recovering) {
    EXPECT_EQ(log.find("generation 2"), std::string::npos) << log;
  }
}

INSTANTIATE_TEST_SUITE_P(Storage, FullAtTest,
                         testing::Values(Moment{"Start", "events", false},
                                         Moment{"FirstGeneration", "generations/", false},
                                         Moment{"NextGeneration", "generations/", true},
                                         Moment{"Lease", "lease-restore", true},
                                         Moment{"FinalCheckpoint", "checkpoints/ckpt", false},
                                         Moment{"FinalManifest", "manifest.json", false},
                                         Moment{"Model", "model/", false},
                                         Moment{"Evaluation", "evaluations/", false},
                                         Moment{"Result", "result.json", false}),
                         [](const auto& info) { return std::string(info.param.name); });

// Nobody restarts them.
TEST(StorageTest, WhoOnlyReadsCheckpointsWaitsUntilTheyCanBeRead) {
  integration::Job job("unreadable", integration::small_training("checkpoint: {everySteps: 300}\n"),
                       1, 1, true);
  job.start("chief", 0);  // the folder is the job's from then on
  ASSERT_TRUE(integration::eventually([&] { return fs::exists(job.folder() / "owner.json"); }))
      << job.log("chief", 0);
  job.kill("chief", 0);
  const fs::path faults = job.folder() / "faults";
  write_file_atomically(faults, "fail 100");
  const integration::Job::Environment faulty = {
      {"LD_PRELOAD", MUSTER_STORAGE_FAULTS},
      {"MUSTER_FAULTS", faults.string()},
      {"MUSTER_FAULTS_BELOW", (job.folder() / "checkpoints").string()},
      {"ASAN_OPTIONS", "verify_asan_link_order=0"}};
  const auto warned = [&](const std::string& role) {
    return job.log(role, 0).find("the storage is tried again") != std::string::npos;
  };
  for (const char* role : {"worker", "evaluator"}) {
    job.start(role, 0, faulty);
    ASSERT_TRUE(integration::eventually([&] { return warned(role); })) << job.log(role, 0);
  }
  job.start("ps", 0);
  job.start("chief", 0);
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  write_file_atomically(faults, "");
  job.expect_success();
  EXPECT_TRUE(job.evaluation()["final"].get<bool>());
}

// What a server that was switched off may forget, although it said it was durable.
void lose_last_checkpoint(const ChaosJob& job) {
  fs::path last;
  fs::file_time_type when{};
  for (const std::string& name : job.checkpoints()) {
    const fs::path path = job.storage() / "checkpoints" / name;
    std::error_code gone;
    const auto written = fs::last_write_time(path / "manifest.json", gone);
    if (gone || written < when) continue;
    when = written;
    last = path;
  }
  if (last.empty()) return;
  const std::string name = last.filename();
  const auto now =
      std::chrono::duration_cast<seconds>(std::chrono::system_clock::now().time_since_epoch());
  std::error_code gone;
  fs::rename(last,
             last.parent_path() / (name.substr(0, name.rfind('-')) + ".tmp-" +
                                   std::to_string(now.count()) + "-0123456789abcdef"),
             gone);
}

TEST(StorageTest, TheLastRenameLostWithEveryProcessCostsNoBit) {
  repeat([](Chance& chance) {
    ChaosJob job("lost-rename", chance);
    job.start();
    ASSERT_NO_THROW(job.run_for(chance.uniform(0.2, 1.1) * duration()));
    job.signal_all(SIGKILL);
    job.await_all();
    // Who has ended with success is not started again: its result stays.
    if (!job.finished() && !fs::remove(job.storage() / "result.json")) lose_last_checkpoint(job);
    expect_undisturbed_end(job);
  });
}

TEST(StorageTest, TheLastRenameLostUnderARunningJobCostsNoBit) {
  repeat([](Chance& chance) {
    ChaosJob job("lost-rename-running", chance);
    job.start();
    ASSERT_NO_THROW(job.run_for(chance.uniform(0.2, 0.7) * duration()));
    if (!job.finished()) lose_last_checkpoint(job);
    job.signal(chance.one_of(job.of("ps")), SIGKILL);
    expect_undisturbed_end(job);
  });
}

}  // namespace
}  // namespace muster::chaos
