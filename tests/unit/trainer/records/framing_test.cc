#include "trainer/records/framing.h"

#include "gtest/gtest.h"

namespace muster::records {
namespace {

// crc32c("") is 0 and crc32c of 32 zero bytes is 0x8a9136aa (RFC 3720, B.4).
TEST(Framing, MasksItsChecksums) {
  EXPECT_EQ(mask_crc(0), 0xa282ead8u);
  EXPECT_EQ(mask_crc(0x8a9136aau), 0x0fd7fffau);
}

TEST(Framing, FramesLengthAndBytes) {
  const std::string record = frame_record("abc");
  EXPECT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 3), "abc");
}

TEST(Framing, BelievesNothingThatDoesNotFitItsChecksum) {
  std::string record = frame_record("abc");
  const auto header = [&] { return std::span<const char, kHeaderBytes>(record.data(), 12); };
  const auto footer = [&] { return std::span<const char, kFooterBytes>(record.data() + 15, 4); };
  EXPECT_EQ(length_of(header()), 3u);
  EXPECT_TRUE(footer_fits("abc", footer()));
  EXPECT_FALSE(footer_fits("abd", footer()));
  for (size_t bit = 0; bit < kHeaderBytes * 8; ++bit) {
    record[bit / 8] = static_cast<char>(record[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(length_of(header()).has_value()) << bit;
    record[bit / 8] = static_cast<char>(record[bit / 8] ^ (1 << bit % 8));
  }
}

}  // namespace
}  // namespace muster::records
