#include "trainer/summary/event_writer.h"

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/system/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/muster/event.pb.h"
#include "trainer/records/framing.h"

namespace muster::summary {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;

class EventWriterTest : public testing::Test {
 protected:
  EventWriterTest()
      : folder_(fs::path(testing::TempDir()) /
                (std::string("muster-events-") +
                 testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
  }
  ~EventWriterTest() override { fs::remove_all(folder_); }

  // Every whole record of a file, its checksums checked.
  static std::vector<tensorboard::Event> read_events(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    const std::string bytes = text.str();
    std::vector<tensorboard::Event> events;
    for (size_t at = 0; at < bytes.size();) {
      uint64_t length = 0;
      std::memcpy(&length, bytes.data() + at, sizeof length);
      const std::string payload = bytes.substr(at + 12, length);
      EXPECT_EQ(bytes.substr(at, length + 16), records::frame_record(payload));
      EXPECT_TRUE(events.emplace_back().ParseFromString(payload));
      at += length + 16;
    }
    return events;
  }

  fs::path folder_;
};

TEST_F(EventWriterTest, BeginsWithTheFormatsVersion) {
  const EventWriter writer(folder_);
  EXPECT_THAT(writer.path().filename().string(),
              MatchesRegex("events\\.out\\.tfevents\\.[0-9]+\\..+\\.[0-9]+\\.[0-9a-f]+"));
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_GT(events[0].wall_time(), 1.6e9);
}

TEST_F(EventWriterTest, WritesNativeScalars) {
  EventWriter writer(folder_);
  writer.scalar("train/loss", 7, 0.5);
  writer.flush();
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].step(), 7);
  ASSERT_EQ(events[1].summary().value_size(), 1);
  const auto& value = events[1].summary().value(0);
  EXPECT_EQ(value.tag(), "train/loss");
  EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "scalars");
  EXPECT_EQ(value.metadata().data_class(), tensorboard::DATA_CLASS_SCALAR);
  EXPECT_EQ(value.tensor().dtype(), tensorboard::DT_FLOAT);
  EXPECT_TRUE(value.tensor().has_tensor_shape());
  ASSERT_EQ(value.tensor().float_val_size(), 1);
  EXPECT_EQ(value.tensor().float_val(0), 0.5f);
}

TEST_F(EventWriterTest, WritesNativeImages) {
  EventWriter writer(folder_);
  writer.image("validation_pictures/0", 9, "the file", 20, 30);
  writer.flush();
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].step(), 9);
  const auto& value = events[1].summary().value(0);
  EXPECT_EQ(value.tag(), "validation_pictures/0");
  EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "images");
  EXPECT_EQ(value.metadata().data_class(), tensorboard::DATA_CLASS_BLOB_SEQUENCE);
  EXPECT_EQ(value.tensor().dtype(), tensorboard::DT_STRING);
  EXPECT_EQ(value.tensor().tensor_shape().dim(0).size(), 3);
  EXPECT_THAT(value.tensor().string_val(), testing::ElementsAre("30", "20", "the file"));
}

TEST_F(EventWriterTest, KeepsWhatIsNoNumber) {
  EventWriter writer(folder_);
  writer.scalar("loss", 1, std::nan(""));
  writer.flush();
  EXPECT_TRUE(std::isnan(read_events(writer.path())[1].summary().value(0).tensor().float_val(0)));
}

TEST_F(EventWriterTest, WritesAtOnceWhereNoDelayIsWanted) {
  EventWriter writer(folder_, std::chrono::milliseconds(0));
  writer.scalar("loss", 1, 2);
  EXPECT_EQ(read_events(writer.path()).size(), 2u);
}

TEST_F(EventWriterTest, WritesTheRestAtItsEnd) {
  fs::path path;
  {
    EventWriter writer(folder_, std::chrono::hours(1));
    path = writer.path();
    for (uint64_t step = 0; step < 10; ++step) writer.scalar("loss", step, 1);
  }
  EXPECT_EQ(read_events(path).size(), 11u);
}

TEST_F(EventWriterTest, StartsANewFileEachTime) {
  const EventWriter first(folder_), second(folder_);
  EXPECT_NE(first.path(), second.path());
}

TEST_F(EventWriterTest, NeverStopsTrainingForTheDisk) {
  std::ofstream(folder_) << "a file in the way";
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  EventWriter writer(folder_);
  writer.scalar("loss", 1, 2);
  writer.flush();
  const std::string log =
      testing::internal::GetCapturedStderr() + testing::internal::GetCapturedStdout();
  EXPECT_THAT(log, HasSubstr("no more events for TensorBoard"));
  EXPECT_EQ(log.find("no more events"), log.rfind("no more events"));
}

}  // namespace
}  // namespace muster::summary
