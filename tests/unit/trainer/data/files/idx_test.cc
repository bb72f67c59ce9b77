#include "trainer/data/files/idx.h"

#include <functional>
#include <optional>
#include <sstream>

#include "common/error.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/data/idx_files.h"

namespace muster::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Images {
  IdxShape shape;
  std::vector<uint8_t> pixels;
};

IdxShape parse_shape(const std::string& bytes) {
  std::istringstream file(bytes);
  ByteStream stream(file, "images", bytes.size());
  return read_idx_shape(stream);
}

// Of `count` samples from `first` on; without a count of all.
Images parse_images(const std::string& bytes, uint64_t first = 0,
                    std::optional<uint64_t> count = {}) {
  Images images{parse_shape(bytes), {}};
  uint64_t elements = count.value_or(images.shape.samples);
  for (const int64_t axis : images.shape.sample) elements *= static_cast<uint64_t>(axis);
  images.pixels.resize(elements);
  std::istringstream file(bytes);
  ByteStream stream(file, "images", bytes.size());
  read_idx_images(stream, images.shape, first, std::as_writable_bytes(std::span(images.pixels)));
  return images;
}

IdxLabels parse_labels(const std::string& bytes) {
  std::istringstream file(bytes);
  ByteStream stream(file, "labels", bytes.size());
  return read_idx_labels(stream);
}

std::string failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), 65);
    return error.what();
  }
  return "no error";
}

TEST(Idx, ReadsPlainImages) {
  const Images images = parse_images(images_2x3(4));
  EXPECT_THAT(images.shape.sample, ElementsAre(2, 3));
  EXPECT_EQ(images.shape.samples, 4u);
  EXPECT_EQ(images.pixels.size(), 24u);
  EXPECT_EQ(images.pixels[23], 23);
}

TEST(Idx, ReadsGzipByItsFirstBytes) {
  EXPECT_EQ(parse_images(gzip(images_2x3(4))).pixels, parse_images(images_2x3(4)).pixels);
}

TEST(Idx, ReadsSeveralGzipMembersAsOneStream) {
  const std::string plain = images_2x3(4);
  const std::string bytes = gzip(plain.substr(0, 20)) + gzip(plain.substr(20));
  EXPECT_EQ(parse_images(bytes).pixels, parse_images(plain).pixels);
}

TEST(Idx, KeepsTheSamplesAskedFor) {
  EXPECT_THAT(parse_images(images_2x3(5), 1, 2).pixels,
              ElementsAre(6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17));
}

TEST(Idx, RefusesAFileThatHasChangedSinceItsHeaderWasRead) {
  const std::string bytes = images_2x3(5);
  std::istringstream file(bytes);
  ByteStream stream(file, "images", bytes.size());
  EXPECT_THAT(failure_of([&] {
                read_idx_images(stream, {4, {2, 3}}, 0, {});
              }),
              HasSubstr("images: expected 4 samples of [2, 3] as before, found 5 of [2, 3]"));
}

TEST(Idx, KnowsTheLargestLabel) {
  const IdxLabels labels = parse_labels(labels_of({3, 9, 0}));
  EXPECT_THAT(labels.labels, ElementsAre(3, 9, 0));
  EXPECT_EQ(labels.largest, 9);
}

struct BadFile {
  const char* name;
  std::string bytes;
  std::vector<std::string> message;
  bool labels = false;
};

class IdxRefuses : public testing::TestWithParam<BadFile> {};

TEST_P(IdxRefuses, WithFileByteExpectedAndFound) {
  const BadFile& bad = GetParam();
  for (const bool zipped : {false, true}) {
    const std::string bytes = zipped ? gzip(bad.bytes) : bad.bytes;
    const std::string message = failure_of([&] {
      if (bad.labels) {
        parse_labels(bytes);
      } else {
        parse_images(bytes);
      }
    });
    EXPECT_THAT(message, HasSubstr(bad.labels ? "labels: " : "images: "));
    for (const std::string& part : bad.message) EXPECT_THAT(message, HasSubstr(part));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, IdxRefuses,
    testing::Values(
        BadFile{"Nothing", "", {"truncated at byte 0", "found 0"}},
        BadFile{"NoIdx", "PNG and so on", {"not an IDX file", "at byte 0", "0x504e4720"}},
        BadFile{"HalfHeader", images_2x3(1).substr(0, 9), {"truncated at byte 8", "found 1"}},
        BadFile{"LabelsAsImages", labels_of({1, 2}), {"are labels given as images?", "0x00000803"}},
        BadFile{
            "ImagesAsLabels", images_2x3(2), {"are images given as labels?", "0x00000801"}, true},
        BadFile{"Floats", word(0x0d03) + word(1) + word(1) + word(1), {"byte 2", "float32"}},
        BadFile{"TooManyDimensions", word(0x0805), {"0x00000805"}},
        BadFile{"NoSamples", images_2x3(0), {"dimension 0 at byte 4 is 0"}},
        BadFile{
            "FlatImages", word(0x0803) + word(1) + word(0) + word(3), {"dimension 1 at byte 8"}},
        BadFile{"AbsurdCount",
                word(0x0803) + word(0xffffffff) + word(28) + word(28),
                {"truncated: expected 3367254359296 bytes", "16 of header",
                 "4294967295 samples of 784", "byte 4"}},
        BadFile{"AbsurdProduct",
                word(0x0804) + word(2) + word(2) + word(0xffffffff) + word(0xffffffff),
                {"dimension 3 at byte 16", "4294967295", "more than any file holds"}},
        BadFile{"ExtraByte", images_2x3(2) + "x", {"after the last sample at byte 28"}},
        BadFile{"ExtraLabel", labels_of({1}) + "x", {"at byte 9"}, true}),
    [](const auto& info) { return info.param.name; });

TEST(Idx, RefusesTruncationAtEveryByte) {
  const std::string plain = images_2x3(3);
  const std::string zipped = gzip(plain);
  for (size_t n = 0; n < plain.size(); ++n) {
    EXPECT_THROW(parse_images(plain.substr(0, n)), Invalid) << n;
  }
  for (size_t n = 0; n < zipped.size(); ++n) {
    EXPECT_THROW(parse_images(zipped.substr(0, n)), Invalid) << n;
  }
}

TEST(Idx, SaysHowMuchOfATruncatedFileThereIs) {
  const std::string plain = images_2x3(3);  // 16 bytes of header and 18 of pixels
  EXPECT_THAT(failure_of([&] { parse_images(plain.substr(0, 30)); }),
              HasSubstr("images: truncated: expected 34 bytes (16 of header and 3 samples of 6, by "
                        "the dimensions at byte 4), found 30"));
  EXPECT_THAT(failure_of([&] { parse_images(plain.substr(0, 16)); }),
              HasSubstr("expected 34 bytes (16 of header and 3 samples of 6, by the dimensions "
                        "at byte 4), found 16"));
  EXPECT_THAT(failure_of([&] { parse_images(gzip(plain.substr(0, 30))); }),
              HasSubstr("truncated: expected 34 bytes unpacked (16 of header and 3 samples of 6, "
                        "by the dimensions at byte 4), found 30"));
  EXPECT_THAT(failure_of([&] {
                parse_labels(labels_of({1, 2, 3}).substr(0, 9));
              }),
              HasSubstr("labels: truncated: expected 11 bytes (8 of header and 3 samples of 1, by "
                        "the dimensions at byte 4), found 9"));
}

TEST(Idx, SaysWhereGzipDataEndTooEarly) {
  std::string plain = images_2x3(300);
  for (size_t i = 16; i < plain.size(); ++i) plain[i] = static_cast<char>(i * i * 31 >> 4);
  const std::string zipped = gzip(plain);
  EXPECT_THAT(
      failure_of([&] { parse_images(zipped.substr(0, zipped.size() / 2)); }),
      AllOf(HasSubstr("truncated: expected 1816 bytes unpacked (16 of header and 300 samples of 6, "
                      "by the dimensions at byte 4), found "),
            HasSubstr("the gzip file of " + std::to_string(zipped.size() / 2) +
                      " bytes ends in the middle")));
  EXPECT_THAT(failure_of([&] { parse_images(zipped.substr(0, zipped.size() - 4)); }),
              HasSubstr("truncated: expected gzip's checksum after 1816 bytes unpacked, found the "
                        "end of the file at byte " +
                        std::to_string(zipped.size() - 4)));
}

TEST(Idx, RefusesADamagedGzipChecksum) {
  std::string zipped = gzip(images_2x3(3));
  zipped[zipped.size() - 6] ^= 1;
  EXPECT_THAT(failure_of([&] { parse_images(zipped); }),
              AllOf(HasSubstr("damaged gzip data at byte"), HasSubstr("CRC mismatch")));
}

TEST(Idx, RefusesWhatFollowsTheGzipData) {
  const std::string zipped = gzip(images_2x3(3));
  EXPECT_THAT(failure_of([&] { parse_images(zipped + "trailing"); }),
              HasSubstr("8 bytes after the end of the gzip data at byte"));
}

// The header is believed only as far as the file can hold what it says.
TEST(Idx, AllocatesNothingForAGzipHeaderThatCannotBeTrue) {
  const std::string bytes = gzip(word(0x0803) + word(0x7fffffff) + word(28) + word(28));
  EXPECT_THAT(failure_of([&] { parse_images(bytes); }), HasSubstr("which holds at most"));
}

}  // namespace
}  // namespace muster::data
