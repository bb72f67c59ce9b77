#include "trainer/loop/evaluation/patient_reader.h"

#include <gmock/gmock.h>

#include "common/error.h"
#include "common/system/file.h"

namespace muster::loop {
namespace {

TEST(PatientReaderTest, SaysOnceThatStorageCannotBeReadAndGoesOn) {
  PatientReader reader;
  const auto fail = [] { throw Unavailable("cannot list checkpoints"); };
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  EXPECT_FALSE(reader.attempt(fail));
  EXPECT_FALSE(reader.attempt(fail));
  EXPECT_TRUE(reader.attempt([] {}));
  EXPECT_TRUE(reader.attempt([] {}));
  EXPECT_FALSE(reader.attempt(fail));
  const std::string log =
      testing::internal::GetCapturedStderr() + testing::internal::GetCapturedStdout();
  const auto count = [&](const std::string& what) {
    int times = 0;
    for (size_t at = log.find(what); at != std::string::npos; at = log.find(what, at + 1)) ++times;
    return times;
  };
  EXPECT_EQ(count("tried again: cannot list checkpoints"), 2) << log;
  EXPECT_EQ(count("can be read again"), 1) << log;
}

TEST(PatientReaderTest, PassesOnWhatTryingAgainDoesNotMend) {
  PatientReader reader;
  EXPECT_THROW(reader.attempt([] { throw Invalid("damaged"); }), Invalid);
  EXPECT_THROW(reader.attempt([] { throw WriteError("no right to", /*lasting=*/true); }),
               WriteError);
  EXPECT_FALSE(reader.attempt([] { throw WriteError("full"); }));
}

}  // namespace
}  // namespace muster::loop
