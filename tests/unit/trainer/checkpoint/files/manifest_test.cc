#include "trainer/checkpoint/files/manifest.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "common/digest.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/checkpoint/checkpoint_testing.h"
#include "tests/unit/trainer/compute/sums.h"

namespace muster::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Manifest full_manifest() {
  Manifest manifest = test_manifest(100, 3);
  manifest.ended = End::stop_when;
  manifest.position.sums.add(0, compute::testing::classified(10.5, 60, 64));
  manifest.position.sums.add(1, compute::testing::classified(1.25, 3, 32));
  manifest.position.evaluations = {3, Best{0.1, 120, 2}, 1, Best{1e-300, 60, 1}, Best{0.2, 110, 3}};
  manifest.shard_steps = {99, 100};
  manifest.files = {{"model-00000-of-00001.safetensors", 80, 0xdeadbeef}};
  manifest.samples = {{"shape", {28, 28}}, {"classes", {"cat", "dog"}}};
  manifest.slices = {{"model-00000-of-00001.safetensors", "a/kernel", {4, 2}, 1}};
  manifest.request = "before \"surgery\"";
  return manifest;
}

TEST(Manifest, ReadsBackWhatItWrote) {
  const Manifest before = full_manifest();
  const Manifest after = parse_manifest(to_text(before), "manifest.json");
  EXPECT_EQ(to_text(after), to_text(before));
  EXPECT_EQ(after.position.step, 100u);
  EXPECT_THAT(after.position.outstanding, ElementsAre(8, 9));
  EXPECT_EQ(after.position.sums.of(0).rows, 64);
  EXPECT_EQ(after.position.sums.of(1).loss, 1.25);
  EXPECT_EQ(after.position.sums.of(1).terms[0], 3);
  EXPECT_EQ(after.position.evaluations, before.position.evaluations);
  EXPECT_EQ(after.ended, End::stop_when);
  EXPECT_EQ(after.files, before.files);
  EXPECT_THAT(after.slices.at(0).shape, ElementsAre(4, 2));
  EXPECT_EQ(after.slices[0].first_row, 1);
  EXPECT_EQ(after.training.at("batchSize"), 32);
  EXPECT_EQ(after.samples, before.samples);
  EXPECT_EQ(after.request, before.request);
}

TEST(Manifest, OfAnEarlierVersionHasNoFormatOfSamplesAndNoRequest) {
  Json json = Json::parse(to_text(full_manifest()));
  json.erase("samples");
  json.erase("request");
  json.erase("crc32c");
  std::string text = json.dump(2);
  text.resize(text.size() - 2);
  text += ",\n  ";
  text += fmt::format("\"crc32c\": {}\n}}\n", crc32c(std::as_bytes(std::span(text))));
  EXPECT_TRUE(parse_manifest(text, "m").samples.is_null());
  EXPECT_EQ(parse_manifest(text, "m").request, "");
}

TEST(Manifest, KeepsMetricsThatAreNoNumbers) {
  Manifest manifest = full_manifest();
  manifest.metrics = {{"loss", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_TRUE(parse_manifest(to_text(manifest), "m").metrics.at("loss").is_null());
}

TEST(Manifest, KeepsSumsThatAreNoNumbers) {
  Manifest manifest = full_manifest();
  manifest.position.sums.add(
      1, compute::testing::classified(std::numeric_limits<double>::infinity(), 0, 1));
  const Manifest after = parse_manifest(to_text(manifest), "m");
  EXPECT_TRUE(std::isnan(after.position.sums.of(1).loss));
  EXPECT_EQ(after.position.sums.of(1).rows, 33);
}

TEST(EpochSumsTest, HoldTheNewestEpochAndTheOneBefore) {
  EpochSums sums;
  EXPECT_EQ(sums.of(0).rows, 0);
  EXPECT_TRUE(sums.known().empty());
  sums.add(3, compute::testing::classified(1, 0, 10));
  sums.add(2, compute::testing::classified(2, 0, 20));  // late
  sums.add(4, compute::testing::classified(4, 0, 40));
  sums.add(3, compute::testing::classified(1, 0, 10));
  sums.add(2, compute::testing::classified(9, 0, 90));  // forgotten
  EXPECT_EQ(sums.of(2).rows, 0);
  EXPECT_EQ(sums.of(3).rows, 20);
  EXPECT_EQ(sums.of(4).rows, 40);
  EXPECT_EQ(sums.newest().number, 4u);
  ASSERT_EQ(sums.known().size(), 2u);
  EXPECT_EQ(sums.known()[0].number, 3u);
  EXPECT_EQ(sums.known()[1].sums.rows, 40);
}

TEST(Manifest, SeesEveryFlippedBit) {
  const std::string text = to_text(full_manifest());
  for (size_t byte = 0; byte < text.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
      EXPECT_THROW(parse_manifest(damaged, "m"), Invalid) << byte << " " << bit;
    }
  }
}

TEST(Manifest, RefusesTruncationAtEveryByte) {
  const std::string text = to_text(full_manifest());
  for (size_t n = 0; n < text.size(); ++n) {
    EXPECT_THROW(parse_manifest(text.substr(0, n), "m"), Invalid) << n;
  }
}

struct BadField {
  const char* name;
  std::string pointer;
  Json value;
  std::string message;
};

// Changes one field of a good manifest and gives it a good checksum.
std::string with_field(const BadField& bad) {
  Json json = Json::parse(to_text(full_manifest()));
  json.erase("crc32c");
  if (bad.value.is_discarded()) {
    json.erase(bad.pointer.substr(1));
  } else {
    json[Json::json_pointer(bad.pointer)] = bad.value;
  }
  std::string text = json.dump(2);
  text.resize(text.size() - 2);
  text += ",\n  ";
  return text + fmt::format("\"crc32c\": {}\n}}\n", crc32c(std::as_bytes(std::span(text))));
}

// Earlier versions had no further sums and no weight of a loss.
TEST(Manifest, ReadsSumsOfAnEarlierVersion) {
  const Json sums = {{{"epoch", 1}, {"loss", 1.25}, {"correct", 3}, {"rows", 32}}};
  const Manifest read = parse_manifest(with_field({"", "/position/sums", sums, ""}), "m");
  EXPECT_EQ(read.position.sums.of(1), compute::testing::classified(1.25, 3, 32));
}

TEST(Manifest, RefusesANumberThatNoDoubleHolds) {
  std::string text = "{\"version\": 2E700, ";
  text += fmt::format("\"crc32c\": {}\n}}\n", crc32c(std::as_bytes(std::span(text))));
  EXPECT_THAT(error_of<Invalid>([&] { parse_manifest(text, "m"); }), HasSubstr("m: no JSON"));
}

class ManifestRefuses : public testing::TestWithParam<BadField> {};

TEST_P(ManifestRefuses, NamingSourceAndField) {
  const std::string message =
      error_of<Invalid>([] { parse_manifest(with_field(GetParam()), "manifest.json"); });
  EXPECT_THAT(message, HasSubstr("manifest.json: "));
  EXPECT_THAT(message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Table, ManifestRefuses,
    testing::Values(
        BadField{"OtherVersion", "/version", 2, "version: expected 1, found 2"},
        BadField{"StepIsText", "/position/step", "7", "position.step: expected an integer"},
        BadField{"StepIsNegative", "/position/step", -1, "position.step: expected an integer"},
        BadField{"FinalIsNumber", "/final", 1, "final: expected true or false"},
        BadField{"NoPosition", "/position", Json(Json::value_t::discarded), "position: missing"},
        BadField{"FilesIsObject", "/files", Json::object(), "files: expected an array"},
        BadField{"FileLeavesFolder", "/files/0/name", "../secret",
                 "files[0].name: expected the plain"},
        BadField{"FileIsHidden", "/files/0/name", "..", "files[0].name"},
        BadField{"FileHasNoName", "/files/0/name", "", "files[0].name"},
        BadField{"LongChecksum", "/files/0/crc32c", uint64_t{1} << 32, "expected 32 bits"},
        BadField{"ShapeHasText", "/slices/0/shape", Json{4, "2"}, "slices[0].shape"},
        BadField{"MetricsIsArray", "/metrics", Json::array(), "metrics: expected an object"}),
    [](const auto& info) { return info.param.name; });

TEST(FolderName, IsReadAsItIsWritten) {
  EXPECT_EQ((FolderName{100, 3}.text()), "ckpt-100-g3");
  EXPECT_EQ(FolderName::parse("ckpt-100-g3"), (FolderName{100, 3}));
  for (const char* other : {"ckpt-100", "ckpt-0100-g3", "ckpt-1-g", "ckpt--1-g2", "ckpt-1-g2x",
                            "ckpt-5.tmp-1-ab", "ckpt-5-g1.tmp-1-ab", "best", ""}) {
    EXPECT_EQ(FolderName::parse(other), std::nullopt) << other;
  }
}

TEST(ShardFileName, CountsFromZeroInFiveDigits) {
  EXPECT_EQ(shard_file_name("model", 0, 2), "model-00000-of-00002.safetensors");
}

}  // namespace
}  // namespace muster::checkpoint
