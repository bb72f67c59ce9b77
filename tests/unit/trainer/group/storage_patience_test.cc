#include "trainer/group/storage_patience.h"

#include <gmock/gmock.h>

#include <cerrno>

#include "common/error.h"

namespace muster::group {
namespace {

using std::chrono::milliseconds;

const WriteError kFull("cannot write result.json", ENOSPC);

TEST(StoragePatienceTest, WaitsForRoomAndSaysWhyItWaits) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  StoragePatience patience;
  EXPECT_TRUE(patience.wait(kFull));
  EXPECT_TRUE(patience.wait(kFull));
  ASSERT_EQ(current_stalls().size(), 1u) << "it is shown where hangs are";
  EXPECT_EQ(current_stalls()[0].kind, WatchedWork::Kind::storage);
  EXPECT_EQ(current_stalls()[0].doing, kFull.what());
  patience.rest();
  patience.rest();
  EXPECT_TRUE(current_stalls().empty());
  const std::string log =
      testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  const std::string begins =
      "waiting for the storage: cannot write result.json: No space left on device";
  EXPECT_NE(log.find(begins), std::string::npos) << log;
  EXPECT_EQ(log.find(begins), log.rfind(begins)) << log;
  const std::string ends = "the storage can be written again";
  EXPECT_NE(log.find(ends), std::string::npos) << log;
  EXPECT_EQ(log.find(ends), log.rfind(ends)) << log;
}

TEST(StoragePatienceTest, EndsWhenItIsOverOrNoWaitWouldMendIt) {
  StoragePatience none{milliseconds(0)};
  EXPECT_TRUE(none.wait(kFull));
  EXPECT_FALSE(none.wait(kFull));
  StoragePatience patience;
  for (const int error : {EACCES, EROFS, ENOTDIR})
    EXPECT_FALSE(patience.wait(WriteError("cannot write", error))) << error;
  for (const int error : {ENOSPC, EDQUOT, EIO, ESTALE})
    EXPECT_FALSE(WriteError("cannot write", error).lasting()) << error;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(patience.wait(kFull, stop.get_token()));
}

TEST(StoragePatienceTest, PatientlyDoesItUntilItIsDone) {
  int attempts = 0;
  EXPECT_EQ(patiently({},
                      [&] {
                        if (++attempts < 3) throw kFull;
                        return attempts;
                      }),
            3);
  EXPECT_THROW(patiently({}, [] { throw WriteError("no right to", /*lasting=*/true); }),
               WriteError);
  EXPECT_THROW(patiently({}, [] { throw Unavailable("else"); }), Unavailable);
}

TEST(StoragePatienceTest, AFolderThatCannotBeWrittenIsNamed) {
  try {
    require_writable("/proc/no-such-folder");
    FAIL();
  } catch (const WriteError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("/proc/no-such-folder"));
  }
  try {
    require_writable("/proc/self/fd/..");
  } catch (const WriteError& error) {
    EXPECT_TRUE(error.lasting());
    EXPECT_THAT(error.what(), testing::HasSubstr("cannot write in /proc/self/fd/.."));
  }
}

}  // namespace
}  // namespace muster::group
