#include "trainer/checkpoint/store/store.h"

#include <sys/fsuid.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "common/program/log.h"
#include "common/system/file.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/checkpoint/checkpoint_testing.h"
#include "trainer/checkpoint/store/unique_name.h"

namespace muster::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class StoreTest : public testing::Test {
 protected:
  fs::path publish_step(Store& store, uint64_t step, uint64_t generation = 1, bool final = false) {
    Manifest manifest = test_manifest(step, generation);
    if (final) manifest.ended = End::length;
    return publish(store, manifest, layout_, test_values(layout_, static_cast<float>(step)));
  }
  std::vector<std::string> names(const Store& store) {
    std::vector<std::string> out;
    for (const FolderName& name : store.list()) out.push_back(name.text());
    return out;
  }

  TestFolder folder_;
  fs::path directory_ = folder_.path() / "checkpoints";
  compute::ParameterLayout layout_ = test_layout();
};

TEST_F(StoreTest, IsEmptyBeforeItsFolderExists) {
  const Store store(directory_, 5);
  EXPECT_FALSE(store.newest().has_value());
  EXPECT_THAT(names(store), IsEmpty());
}

TEST_F(StoreTest, PublishesUnderStepAndGeneration) {
  Store store(directory_, 5);
  EXPECT_EQ(publish_step(store, 100, 2), directory_ / "ckpt-100-g2");
  const auto found = store.newest();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->directory, directory_ / "ckpt-100-g2");
  EXPECT_EQ(found->manifest.position.step, 100u);
  EXPECT_EQ(found->manifest.files.size(), 3u);
  for (const auto& entry : fs::directory_iterator(directory_)) {
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("tmp")));
  }
}

TEST_F(StoreTest, WritesTheIndexAndTensorFlowsState) {
  Store store(directory_, 5);
  publish_step(store, 100);
  const fs::path newest = publish_step(store, 200);
  EXPECT_EQ(read_all(directory_ / "checkpoint"),
            "model_checkpoint_path: \"ckpt-200-g1\"\n"
            "all_model_checkpoint_paths: \"ckpt-100-g1\"\n"
            "all_model_checkpoint_paths: \"ckpt-200-g1\"\n");
  const Json index = Json::parse(read_all(newest / "model.safetensors.index.json"));
  EXPECT_EQ(index["weight_map"]["hidden/kernel"], "model-00000-of-00001.safetensors");
  EXPECT_EQ(index["weight_map"].size(), 6u);  // no slots
  EXPECT_EQ(index["metadata"]["total_size"], (3 * 4 * 16 + 7 * 70 + 70 + 1 + 15 + 5) * 4);
}

TEST_F(StoreTest, PrefersAHigherGenerationToALaterStep) {
  Store store(directory_, 5);
  publish_step(store, 300, 1);
  publish_step(store, 200, 2);
  EXPECT_EQ(store.newest()->directory.filename(), "ckpt-200-g2");
}

TEST_F(StoreTest, RefusesAStepTwiceInAGeneration) {
  Store store(directory_, 5);
  publish_step(store, 100, 1);
  EXPECT_TRUE(store.published(100, 1));
  EXPECT_FALSE(store.published(100, 2));
  EXPECT_THAT(error_of<Invalid>([&] { publish_step(store, 100, 1); }), HasSubstr("ckpt-100-g1"));
  publish_step(store, 100, 2);
}

TEST_F(StoreTest, RefusesAManifestThatItsFilesDoNotFit) {
  Store store(directory_, 5);
  Manifest manifest = test_manifest(100, 1);
  manifest.files = {{"model-00000-of-00001.safetensors", 10, 0}};
  const fs::path temporary = store.begin(100);
  EXPECT_THROW(store.publish(temporary, manifest), Invalid);
  write_all(temporary / manifest.files[0].name, "short");
  EXPECT_THAT(error_of<Invalid>([&] { store.publish(temporary, manifest); }),
              HasSubstr("expected 10 bytes, found 5"));
  EXPECT_FALSE(store.newest().has_value());
  store.discard(temporary);
  EXPECT_FALSE(fs::exists(temporary));
}

// The damage that a crash or a bad disk can do to the newest checkpoint.
class DamagedNewest : public StoreTest,
                      public testing::WithParamInterface<
                          std::pair<const char*, std::function<void(const fs::path&)>>> {};

TEST_P(DamagedNewest, IsPassedOverForTheOneBeforeWithAWarning) {
  Store store(directory_, 5);
  publish_step(store, 100);
  const fs::path newest = publish_step(store, 200);
  GetParam().second(newest);
  testing::internal::CaptureStderr();
  log::initialize("test");
  const auto found = store.newest();
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->directory.filename(), "ckpt-100-g1");
  EXPECT_THAT(log, HasSubstr("ckpt-200-g1 is passed over"));
  testing::internal::CaptureStderr();
  store.newest();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // said once
}

const char kModel[] = "model-00000-of-00001.safetensors";
INSTANTIATE_TEST_SUITE_P(
    Table, DamagedNewest,
    testing::Values(
        std::pair("FlippedBit", [](const fs::path& p) { flip_bit(p / kModel, 2000); }),
        std::pair("FlippedSlot",
                  [](const fs::path& p) {
                    flip_bit(p / "optimizer-00000-of-00001.safetensors", 999);
                  }),
        std::pair("FlippedIndex",
                  [](const fs::path& p) { flip_bit(p / "model.safetensors.index.json", 30); }),
        std::pair("Truncated", [](const fs::path& p) { fs::resize_file(p / kModel, 1000); }),
        std::pair("Empty", [](const fs::path& p) { fs::resize_file(p / kModel, 0); }),
        std::pair("FileGone", [](const fs::path& p) { fs::remove(p / kModel); }),
        std::pair("ManifestGone", [](const fs::path& p) { fs::remove(p / "manifest.json"); }),
        std::pair("ManifestFlipped", [](const fs::path& p) { flip_bit(p / "manifest.json", 40); }),
        std::pair("ManifestTruncated",
                  [](const fs::path& p) { fs::resize_file(p / "manifest.json", 100); }),
        std::pair("ManifestOfAnother",
                  [](const fs::path& p) {
                    write_all(p / "manifest.json",
                              read_all(p.parent_path() / "ckpt-100-g1" / "manifest.json"));
                  })),
    [](const auto& info) { return info.param.first; });

TEST_F(StoreTest, RefusesToGoOnWithoutAnyOfSeveralDamagedOnes) {
  Store store(directory_, 5);
  EXPECT_FALSE(store.to_resume().has_value());
  flip_bit(publish_step(store, 100) / kModel, 2000);
  fs::resize_file(publish_step(store, 200) / "manifest.json", 100);
  EXPECT_THAT(error_of<Invalid>([&] { store.to_resume(); }),
              AllOf(HasSubstr("ckpt-100-g1/" + std::string(kModel) + ": damaged: expected crc32c"),
                    HasSubstr("ckpt-200-g1/manifest.json: truncated"),
                    HasSubstr("move ckpt-200-g1, ckpt-100-g1 away")));
  EXPECT_FALSE(store.newest().has_value());  // who waits for one waits on
  publish_step(store, 300);
  EXPECT_EQ(store.to_resume()->directory.filename(), "ckpt-300-g1");
}

TEST_F(StoreTest, SearchesWithoutAWord) {
  Store store(directory_, 5);
  publish_step(store, 100);
  flip_bit(publish_step(store, 200) / kModel, 2000);
  testing::internal::CaptureStderr();
  const Store::Search search = store.search();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(search.newest->directory.filename(), "ckpt-100-g1");
  ASSERT_EQ(search.damaged.size(), 1u);
  EXPECT_EQ(search.damaged[0].directory.filename(), "ckpt-200-g1");
}

// While it lives, the process runs as a user whom the files' permissions bind.
class Unprivileged {
 public:
  Unprivileged() : before_(geteuid()) {
    if (before_ == 0) change(65534);
  }
  ~Unprivileged() {
    if (before_ == 0) change(before_);
  }

 private:
  static void change(uid_t to) { EXPECT_EQ(seteuid(to), 0); }

  const uid_t before_;
};

// If a checkpoint may not be read, nobody knows whether there is a whole one.
TEST_F(StoreTest, WhatMayNotBeReadIsNeitherMissingNorDamaged) {
  Store store(directory_, 5);
  publish_step(store, 100);
  const fs::path newest = publish_step(store, 200);
  for (const char* name : {"manifest.json", kModel, "."}) {
    const fs::perms before = fs::status(newest / name).permissions();
    fs::permissions(newest / name, fs::perms::none);
    {
      const Unprivileged unprivileged;
      EXPECT_THAT(error_of<Unavailable>([&] { store.newest(); }), HasSubstr("ckpt-200-g1")) << name;
    }
    fs::permissions(newest / name, before);
  }
  EXPECT_EQ(store.newest()->directory, newest);
}

TEST_F(StoreTest, NeitherCountsNorPrunesDamagedOnes) {
  Store store(directory_, 2);
  publish_step(store, 100);
  publish_step(store, 200);
  flip_bit(publish_step(store, 300) / kModel, 2000);
  store.newest();                                                    // finds that one
  fs::resize_file(publish_step(store, 400) / "manifest.json", 100);  // this, everybody sees
  EXPECT_THAT(names(store), ElementsAre("ckpt-400-g1", "ckpt-300-g1", "ckpt-200-g1"));
  publish_step(store, 500);
  publish_step(store, 600);
  EXPECT_THAT(names(store),
              ElementsAre("ckpt-600-g1", "ckpt-500-g1", "ckpt-400-g1", "ckpt-300-g1"));
}

TEST_F(StoreTest, KeepsTheNewestThatManyAndTheFinalOne) {
  Store store(directory_, 2);
  publish_step(store, 100);
  publish_step(store, 200, 1, true);
  publish_step(store, 300);
  publish_step(store, 400);
  publish_step(store, 500);
  EXPECT_THAT(names(store), ElementsAre("ckpt-500-g1", "ckpt-400-g1", "ckpt-200-g1"));
  EXPECT_THAT(read_all(directory_ / "checkpoint"), Not(HasSubstr("ckpt-100-g1")));
}

TEST_F(StoreTest, KeepsTheBestUntilAnotherIs) {
  Store store(directory_, 1);
  EXPECT_EQ(store.step_of_best(), std::nullopt);
  publish_step(store, 100);
  EXPECT_EQ(store.step_of_best(), std::nullopt);
  store.mark_best(*store.newest());
  EXPECT_EQ(store.step_of_best(), 100u);
  publish_step(store, 200);
  publish_step(store, 300);
  EXPECT_THAT(names(store), ElementsAre("ckpt-300-g1", "ckpt-100-g1"));
  store.mark_best(*store.newest());
  EXPECT_EQ(Store(directory_, 1).step_of_best(), 300u);
  publish_step(store, 400);
  EXPECT_THAT(names(store), ElementsAre("ckpt-400-g1", "ckpt-300-g1"));
}

TEST_F(StoreTest, KeepsWhatTheNewestNamesAsTheBestByEvaluations) {
  Store store(directory_, 1);
  const auto publish_after = [&](uint64_t step, uint64_t best, uint64_t kept) {
    Manifest manifest = test_manifest(step, 1);
    manifest.position.evaluations = {1, Best{0.5, best, 1}, 0, Best{0.25, kept, 1}, {}};
    publish(store, manifest, layout_, test_values(layout_, 1.0f));
  };
  publish_after(100, 100, 100);
  publish_after(200, 100, 200);
  publish_after(300, 100, 200);
  EXPECT_THAT(names(store), ElementsAre("ckpt-300-g1", "ckpt-200-g1", "ckpt-100-g1"));
  publish_after(400, 400, 200);
  EXPECT_THAT(names(store), ElementsAre("ckpt-400-g1", "ckpt-200-g1"));
}

// Rank 0 learns late what an evaluator has found.
TEST_F(StoreTest, KeepsWhatIsEvaluatedUntilTheNewestKnowsOfIt) {
  const fs::path evaluations = directory_.parent_path() / "evaluations";
  fs::create_directories(evaluations);
  Store store(directory_, 1);
  store.leave_evaluated(evaluations);
  const auto publish_knowing = [&](uint64_t step, uint64_t evaluated) {
    Manifest manifest = test_manifest(step, 1);
    manifest.position.evaluations.step = evaluated;
    publish(store, manifest, layout_, test_values(layout_, 1.0f));
  };
  publish_knowing(100, 0);
  write_file_atomically(evaluations / "100.json", "{}");
  publish_knowing(200, 0);
  publish_knowing(300, 0);
  EXPECT_THAT(names(store), ElementsAre("ckpt-300-g1", "ckpt-100-g1"));
  publish_knowing(400, 100);
  EXPECT_THAT(names(store), ElementsAre("ckpt-400-g1"));
  write_file_atomically(evaluations / "400.json", "{}");
  publish_step(store, 500, 1, /*final=*/true);
  EXPECT_THAT(names(store), ElementsAre("ckpt-500-g1"));
}

TEST_F(StoreTest, FindsTheNewestWholeOneOfAStep) {
  Store store(directory_, 9);
  publish_step(store, 100, 1);
  publish_step(store, 100, 2);
  publish_step(store, 200, 2);
  EXPECT_EQ(store.of_step(100)->directory, directory_ / "ckpt-100-g2");
  fs::resize_file(directory_ / "ckpt-100-g2" / "manifest.json", 100);
  EXPECT_EQ(store.of_step(100)->directory, directory_ / "ckpt-100-g1");
  EXPECT_FALSE(store.of_step(150));
}

TEST_F(StoreTest, LeavesWhatAReaderLeases) {
  Store store(directory_, 1);
  publish_step(store, 100);
  auto lease = store.lease(*store.newest(), "evaluator/0");
  publish_step(store, 200);
  EXPECT_THAT(names(store), ElementsAre("ckpt-200-g1", "ckpt-100-g1"));
  lease->renew();
  lease.reset();
  publish_step(store, 300);
  EXPECT_THAT(names(store), ElementsAre("ckpt-300-g1"));
}

TEST_F(StoreTest, LetsTheLeaseOfADeadReaderLapse) {
  Store store(directory_, 1);
  write_all(publish_step(store, 100) / "lease-evaluator-1-ab", "1000000000 evaluator\n");
  publish_step(store, 200);
  EXPECT_THAT(names(store), ElementsAre("ckpt-200-g1"));
}

TEST_F(StoreTest, GivesNoLeaseOnAPrunedCheckpoint) {
  Store store(directory_, 1);
  publish_step(store, 100);
  const auto found = store.newest();
  fs::remove_all(found->directory);
  EXPECT_EQ(store.lease(*found, "evaluator"), nullptr);
  fs::create_directories(found->directory);  // half gone
  EXPECT_EQ(store.lease(*found, "evaluator"), nullptr);
  EXPECT_TRUE(fs::is_empty(found->directory));
}

// This is not the same as a checkpoint that has gone: no retry with a newer one would help.
TEST_F(StoreTest, SaysThatALeaseCannotBeWritten) {
  Store store(directory_, 1);
  publish_step(store, 100);
  const auto found = store.newest();
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &none);
  EXPECT_THROW(store.lease(*found, "evaluator"), WriteError);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
}

// Root could remove it all the same, so that the thread is another user's meanwhile.
TEST_F(StoreTest, TellsOfACheckpointThatCannotBeRemoved) {
  constexpr uid_t kNobody = 65534;
  Store store(directory_, 1);
  const fs::path kept = publish_step(store, 100);
  fs::permissions(folder_.path(), fs::perms(0755));
  fs::permissions(directory_, fs::perms(0777));
  fs::permissions(kept, fs::perms(0555));
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  ::setfsuid(kNobody);
  publish_step(store, 200);
  ::setfsuid(::geteuid());
  const std::string log =
      testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("the checkpoint " + kept.string() +
                             " cannot be removed, and its room is not given back: Permission "
                             "denied"));
  EXPECT_THAT(names(store), ElementsAre("ckpt-200-g1"));
  for (const auto& entry : fs::directory_iterator(directory_))
    if (entry.is_directory()) fs::permissions(entry.path(), fs::perms(0755));
}

TEST_F(StoreTest, ClearsWhatADeadWriterLeftLongAgo) {
  Store store(directory_, 1);
  const fs::path old = directory_ / "ckpt-5.tmp-1000000000-00ff";
  const fs::path unknown = directory_ / "ckpt-5.tmp-of-a-user";
  fs::create_directories(old);
  write_all(old / kModel, "half");
  fs::create_directories(unknown);
  const fs::path other = store.begin(6);
  const fs::path mine = store.begin(7);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(unknown));
  EXPECT_TRUE(fs::exists(other));
  store.remove_leftovers(std::chrono::seconds(0));
  EXPECT_FALSE(fs::exists(other));
  EXPECT_FALSE(fs::exists(mine));
}

// The case of a chief that slept while the owner of a later generation cleared its half-written
// checkpoint.
TEST_F(StoreTest, PublishesNothingFromAFolderThatWasCleared) {
  Store store(directory_, 1);
  const fs::path temporary = store.begin(7);
  Manifest manifest = test_manifest(7, 1);
  manifest.files = {write_safetensors(temporary / kModel, {}, {})};
  store.remove_leftovers(std::chrono::seconds(0));
  EXPECT_THROW(store.publish(temporary, manifest), Invalid);
  EXPECT_FALSE(store.newest().has_value());
}

TEST_F(StoreTest, AFenceEndsWhatWasBegunAndLeavesWhatIsPublished) {
  Store store(directory_, 1);
  publish_step(store, 5);
  const fs::path temporary = store.begin(7);
  Manifest manifest = test_manifest(7, 1);
  manifest.files = {write_safetensors(temporary / kModel, {}, {})};
  const fs::path pruned = directory_ / "ckpt-4-g1.tmp-1000000000-00ff";
  fs::create_directories(pruned);
  store.fence();
  EXPECT_THROW(store.publish(temporary, manifest), Invalid);
  ASSERT_TRUE(store.newest().has_value());
  EXPECT_EQ(store.newest()->manifest.position.step, 5u);
  EXPECT_TRUE(fs::exists(pruned));
  EXPECT_NO_THROW(store.discard(store.begin(8)));
}

TEST_F(StoreTest, NamesAFolderThatCannotBeWritten) {
  write_all(directory_, "a file in the way");
  Store store(directory_, 1);
  EXPECT_THAT(error_of<WriteError>([&] { store.begin(1); }), HasSubstr(directory_.string()));
}

TEST(UniqueName, DiffersAndTellsItsTime) {
  const std::string name = unique_name();
  EXPECT_NE(name, unique_name());
  ASSERT_TRUE(time_of(name).has_value());
  EXPECT_LT(std::chrono::system_clock::now() - *time_of(name), std::chrono::minutes(5));
  EXPECT_FALSE(time_of("of-a-user").has_value());
  EXPECT_FALSE(time_of("99999999999999999-ab").has_value());
}

}  // namespace
}  // namespace muster::checkpoint
