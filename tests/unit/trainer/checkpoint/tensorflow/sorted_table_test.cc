#include "trainer/checkpoint/tensorflow/sorted_table.h"

#include "gmock/gmock.h"
#include "tests/unit/trainer/checkpoint/checkpoint_testing.h"
#include "tests/unit/trainer/checkpoint/tensorflow/table_builder.h"

namespace muster::checkpoint {
namespace {

using test::block_of;
using test::TableBuilder;
using test::varint;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_of_table(const std::string& bytes) {
  return error_of<Invalid>([&] { read_table(bytes, "model.index"); });
}

const TableEntries kEntries = {{"", "header"}, {"a/bias", "1"}, {"a/kernel", "22"}, {"b", ""}};

TEST(SortedTable, ReadsKeysThatShareTheirBeginnings) {
  EXPECT_EQ(read_table(test::table_of(kEntries), "t"), kEntries);
}

TEST(SortedTable, ReadsSeveralBlocksOneOfThemCompressed) {
  TableBuilder builder;
  const std::string first = builder.add(block_of({kEntries[0], kEntries[1]}));
  const std::string plain = block_of({kEntries[2], kEntries[3]});
  const std::string packed =
      varint(plain.size()) + static_cast<char>((plain.size() - 1) << 2) + plain;
  const std::string second = builder.add(packed, 1);
  const std::string index = builder.add(block_of({{"a/c", first}, {"c", second}}));
  EXPECT_EQ(read_table(builder.finish(index), "t"), kEntries);
}

TEST(SortedTable, RefusesEveryTruncationAndEveryFlippedBit) {
  const std::string whole = test::table_of(kEntries);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(read_table(std::string_view(whole).substr(0, size), "t"), Invalid) << size;
  // The footer's place of the blocks about the table, and its padding, are not used.
  for (size_t byte = 0; byte < whole.size() - 48; ++byte) {
    std::string bytes = whole;
    bytes[byte] = static_cast<char>(bytes[byte] ^ 4);
    try {
      EXPECT_EQ(read_table(bytes, "t"), kEntries) << byte;  // in the block that is not read
    } catch (const Invalid&) {
    }
  }
}

TEST(SortedTable, NamesTheFileAndTheByte) {
  EXPECT_THAT(
      error_of_table("short"),
      AllOf(StartsWith("model.index: expected a table in LevelDB's format with at least 48"),
            HasSubstr("found 5")));
  EXPECT_THAT(error_of_table(std::string(48, 'x')),
              HasSubstr("the number db4775248b80fb57 at byte 40"));
  std::string bytes = test::table_of(kEntries);
  bytes[3] = static_cast<char>(bytes[3] ^ 1);
  EXPECT_THAT(error_of_table(bytes), HasSubstr("a block with its checksum at byte 0"));
}

// Each of them would cost much memory or time, or be read beyond its end, if it were believed.
TEST(SortedTable, BelievesNoSizesAndPlaces) {
  const auto table = [](const std::string& content, const std::string& place = "") {
    TableBuilder builder;
    const std::string own = builder.add(content);
    return builder.finish(builder.add(block_of({{"z", place.empty() ? own : place}})));
  };
  const std::string huge = varint(UINT64_MAX);
  EXPECT_THAT(error_of_table(table("", huge + varint(5))), HasSubstr("lies in the file"));
  EXPECT_THAT(error_of_table(table("", varint(5) + huge)), HasSubstr("lies in the file"));
  EXPECT_THAT(error_of_table(table("", varint(0) + varint(UINT64_MAX - 4))),
              HasSubstr("lies in the file"));
  EXPECT_THAT(error_of_table(table("", "\xff")), HasSubstr("the place of a block"));
  EXPECT_THAT(error_of_table(table("abc")), HasSubstr("a list of restarts"));
  EXPECT_THAT(error_of_table(table(test::fixed(UINT32_MAX, 4))), HasSubstr("a list of restarts"));
  const std::string end = test::fixed(0, 4) + test::fixed(1, 4);
  EXPECT_THAT(error_of_table(table(varint(1) + varint(0) + varint(0) + end)),
              HasSubstr("whole entries"));
  EXPECT_THAT(error_of_table(table(varint(0) + huge + varint(0) + end)),
              HasSubstr("whole entries"));
  EXPECT_THAT(
      error_of_table(table(varint(0) + varint(5000) + varint(0) + std::string(5000, 'k') + end)),
      HasSubstr("at most 4096 bytes"));
  EXPECT_THAT(error_of_table(table(std::string(10, '\xff') + end)), HasSubstr("whole entries"));
}

TEST(SortedTable, RefusesKeysThatDoNotAscendAndBlocksThatAreReadTwice) {
  EXPECT_THAT(error_of_table(test::table_of({{"b", ""}, {"a", ""}})),
              HasSubstr("keys that ascend"));
  EXPECT_THAT(error_of_table(test::table_of({{"a", ""}, {"a", ""}})),
              HasSubstr("keys that ascend"));
  TableBuilder builder;
  const std::string place = builder.add(block_of({{"a", ""}}));
  const std::string index = builder.add(block_of({{"b", place}, {"c", place}}));
  EXPECT_THAT(error_of_table(builder.finish(index)), HasSubstr("blocks one after the other"));
}

TEST(Snappy, UnpacksLiteralsAndCopies) {
  // "ab", then 6 bytes from 2 before, then a literal of 61 bytes with its length in a byte of its
  // own, then copies with distances of two and four bytes.
  const std::string literal(61, 'x');
  std::string packed = varint(2 + 6 + 61 + 3 + 2);
  packed += std::string(1, 1 << 2) + "ab";
  packed += std::string({(6 - 4) << 2 | 1, 2});
  packed += std::string({static_cast<char>(60 << 2), 60}) + literal;
  packed += std::string({2 << 2 | 2, 69, 0});
  packed += std::string({1 << 2 | 3, 1, 0, 0, 0});
  EXPECT_EQ(unpack_snappy(packed, 1000, "t"), "abababab" + literal + "aba" + "aa");
}

TEST(Snappy, RefusesDamage) {
  const auto error = [](const std::string& packed, size_t most = 1000) {
    return error_of<Invalid>([&] { unpack_snappy(packed, most, "block"); });
  };
  EXPECT_THAT(error(""), HasSubstr("found no length"));
  EXPECT_THAT(error(varint(2000)), HasSubstr("block: expected at most 1000 bytes"));
  EXPECT_THAT(error(varint(3) + std::string(1, 1 << 2) + "ab"), HasSubstr("damage after 2"));
  EXPECT_THAT(error(varint(2) + std::string(1, 4 << 2) + "ab"), HasSubstr("damage after 0"));
  EXPECT_THAT(error(varint(9) + std::string(1, 0) + "a" + std::string({1, 2})),
              HasSubstr("damage"));
  EXPECT_THAT(error(varint(9) + std::string(1, 0) + "a" + std::string({1, 0})),
              HasSubstr("damage"));
  EXPECT_THAT(error(varint(2) + std::string(1, 0) + "a" + std::string({1, 1})),
              HasSubstr("damage"));
}

}  // namespace
}  // namespace muster::checkpoint
