#include "trainer/records/record_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/system/file.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/records/fixture.h"
#include "trainer/records/framing.h"
#include "trainer/records/record_writer.h"

namespace muster::records {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Records {
  std::vector<std::string> bytes;
  std::vector<std::string> damage;
};

// All that a reader gets of a file that holds `bytes`.
Records read_all(const std::string& bytes) {
  const TestFolder folder;
  const RecordFile file(folder.write("f", bytes));
  Records records;
  const auto places =
      file.index([&](const std::string& message) { records.damage.push_back(message); });
  for (size_t i = 0; i < places.size(); ++i) {
    std::string record;
    try {
      file.read(places[i], i, record);
      records.bytes.push_back(record);
    } catch (const Invalid& error) {
      records.damage.emplace_back(error.what());
    }
  }
  return records;
}

const std::string kThree = frame_record("first") + frame_record("") + frame_record("the third");

TEST(RecordFile, ReadsWhatWasWrittenInAnyOrder) {
  const TestFolder folder;
  std::vector<std::string> written;
  RecordWriter writer(folder.path() / "f");
  for (int i = 0; i < 200; ++i) {
    written.emplace_back(static_cast<size_t>(i * i), static_cast<char>(i));
    writer.write(written.back());
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "f"));
  writer.finish();
  EXPECT_EQ(writer.count(), 200u);
  const RecordFile file(folder.path() / "f");
  const std::vector<Place> places = file.index();
  ASSERT_EQ(places.size(), 200u);
  std::string bytes;
  for (size_t i = 200; i-- > 0;) {
    file.read(places[i], i, bytes);
    EXPECT_EQ(bytes, written[i]);
  }
}

TEST(RecordFile, ReadsWhatTensorFlowWrites) {
  const RecordFile file(fixture("detection.tfrecord"));
  EXPECT_EQ(file.index().size(), 2u);
}

TEST(RecordFile, HasNoRecordsWhereTheFileIsEmpty) {
  const Records records = read_all("");
  EXPECT_THAT(records.bytes, IsEmpty());
  EXPECT_THAT(records.damage, IsEmpty());
}

TEST(RecordFile, LosesOneRecordByOneFlippedBit) {
  for (size_t bit = 0; bit < kThree.size() * 8; ++bit) {
    std::string bytes = kThree;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const Records records = read_all(bytes);
    EXPECT_EQ(records.bytes.size(), 2u) << "bit " << bit;
    ASSERT_EQ(records.damage.size(), 1u) << "bit " << bit;
    EXPECT_THAT(records.damage[0], HasSubstr("f: record ")) << "bit " << bit;
  }
}

TEST(RecordFile, LosesTheLastRecordByATruncation) {
  const size_t first = 21, second = 37;  // where records end
  for (size_t size = 1; size < kThree.size(); ++size) {
    const Records records = read_all(kThree.substr(0, size));
    EXPECT_EQ(records.bytes.size(), size < first ? 0u : size < second ? 1u : 2u) << size;
    const bool at_an_end = size == first || size == second;
    EXPECT_EQ(records.damage.size(), at_an_end ? 0u : 1u) << size;
  }
}

std::string with_length(uint64_t length) {
  // A header whose checksum fits: that of a record of 8 bytes, whose bytes are the length.
  std::string bytes(reinterpret_cast<const char*>(&length), 8);
  const std::string framed = frame_record(bytes);
  return bytes + framed.substr(framed.size() - 4);
}

TEST(RecordFile, NamesFileRecordAndByte) {
  std::string flipped = kThree;
  flipped[21 + 4] ^= 1;
  std::string data = kThree;
  data[14] ^= 1;
  struct Row {
    std::string bytes;
    const char* message;
  };
  for (const Row& row : std::initializer_list<Row>{
           {flipped,
            "f: record 1 at byte 21: damaged: the length does not fit its checksum; 16 "
            "bytes are skipped"},
           {data, "f: record 0 at byte 0: damaged: 5 bytes of data do not fit their checksum"},
           {kThree.substr(0, 30),
            "f: record 1 at byte 21: truncated: expected at least 16 bytes, found 9"},
           {kThree.substr(0, 60),
            "f: record 2 at byte 37: truncated: expected 9 bytes of data, found 7"},
           {with_length(UINT64_MAX) + kThree,
            "f: record 0 at byte 0: truncated: expected 18446744073709551615 bytes of data, found"},
           {with_length(UINT64_MAX - 15) + kThree, "expected 18446744073709551600 bytes of data"},
           {std::string(100, '\0') + kThree,
            "record 0 at byte 0: damaged: the length does not fit its checksum; 100 bytes are "
            "skipped"},
       }) {
    const Records records = read_all(row.bytes);
    ASSERT_EQ(records.damage.size(), 1u) << row.message;
    EXPECT_THAT(records.damage[0], HasSubstr(row.message));
  }
}

TEST(RecordFile, FindsTheNextRecordFarBehind) {
  std::string bytes = kThree + std::string(1000000, 'x') + frame_record("behind");
  EXPECT_THAT(read_all(bytes).bytes, ElementsAre("first", "", "the third", "behind"));
}

TEST(RecordFile, MayGiveUpAtTheFirstDamage) {
  const TestFolder folder;
  const RecordFile file(folder.write("f", kThree.substr(0, 60)));
  EXPECT_THAT(error_of([&] { file.index(); }), HasSubstr("record 2 at byte 37"));
}

TEST(RecordFile, RefusesWhatIsNoFileOfRecords) {
  const TestFolder folder;
  EXPECT_THAT(error_of([&] { const RecordFile file(folder.path() / "none"); }),
              HasSubstr("cannot open"));
  EXPECT_THAT(error_of([&] { const RecordFile file(folder.path()); }), HasSubstr("regular file"));
  const RecordFile gzip(folder.write("g", "\x1f\x8b\x08" + std::string(30, 'x')));
  EXPECT_THAT(error_of([&] { gzip.index(); }),
              HasSubstr("g: expected TFRecords, found a gzip file"));
  for (const char* begin : {"\x78\x01", "\x78\x9c", "\x78\xda"}) {
    const RecordFile zlib(folder.write("z", begin + std::string(30, 'x')));
    EXPECT_THAT(error_of([&] { zlib.index(); }),
                HasSubstr("z: expected TFRecords, found a file compressed by zlib"));
  }
}

TEST(RecordFile, NoticesThatTheFileHasBecomeShorter) {
  const TestFolder folder;
  const auto path = folder.write("f", kThree);
  const RecordFile file(path);
  const auto places = file.index();
  std::filesystem::resize_file(path, 50);
  std::string bytes;
  EXPECT_THAT(error_of([&] { file.read(places[2], 2, bytes); }),
              HasSubstr("f: record 2 at byte 37: "));
}

TEST(RecordWriter, LeavesNothingWithoutFinish) {
  const TestFolder folder;
  {
    RecordWriter writer(folder.path() / "f");
    writer.write(std::string(3 << 20, 'x'));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(RecordWriter, SaysWhereItCannotWrite) {
  const TestFolder folder;
  try {
    RecordWriter writer(folder.path() / "missing" / "f");
    FAIL();
  } catch (const WriteError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot write"), HasSubstr("missing/f")));
  }
}

}  // namespace
}  // namespace muster::records
