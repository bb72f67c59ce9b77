#include "trainer/data/sources/digits.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "common/system/file.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "tests/unit/trainer/data/images/objects.h"
#include "trainer/records/label_map.h"

namespace muster::data {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Twelve digits of 28 x 28: a bright rectangle each, of another size; the last two, a sixth, are
// nines, and there are no others.
class DigitsTest : public testing::Test {
 protected:
  static constexpr uint32_t kDigits = 12;

  DigitsTest() {
    std::string images = word(0x0803) + word(kDigits) + word(28) + word(28);
    std::vector<uint8_t> labels;
    for (uint32_t i = 0; i < kDigits; ++i) {
      for (uint32_t y = 0; y < 28; ++y)
        for (uint32_t x = 0; x < 28; ++x)
          images.push_back(y >= 4 && y < 12 + i && x >= 6 && x < 24 - i ? '\xff' : '\0');
      labels.push_back(static_cast<uint8_t>(i < kDigits - 2 ? i % 5 : 9));
    }
    options_.images = folder_.write("images", images);
    options_.labels = folder_.write("labels", labels_of(labels));
    options_.train = 9;
    options_.validation = 4;
    options_.size = 64;
    options_.shards = 1;
  }

  fs::path make(const std::string& name) {
    options_.output = folder_.path() / name;
    make_digits(options_);
    return options_.output;
  }
  std::string refusal() {
    try {
      make("refused");
    } catch (const Invalid& error) {
      return error.what();
    }
    return "no error";
  }
  static std::map<std::string, std::string> files(const fs::path& folder) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file())
        all[entry.path().lexically_relative(folder)] = read_file(entry.path());
    return all;
  }
  static std::unique_ptr<Dataset> records(const fs::path& folder, const std::string& part) {
    spec::RecordSource records;
    records.files = {folder / (part + "-*-of-*.tfrecord")};
    records.label_map = folder / "label_map.pbtxt";
    records.labels = compute::LabelKind::objects;
    records.images = settings(64, 64);
    spec::DataSource source;
    source.kind = records;
    return open_dataset(source);
  }
  static std::unique_ptr<Dataset> coco(const fs::path& folder, const std::string& part) {
    spec::CocoSource coco;
    coco.annotations = folder / "coco" / (part + ".json");
    coco.folder = folder / "coco" / part;
    coco.images = settings(64, 64);
    spec::DataSource source;
    source.kind = coco;
    return open_dataset(source);
  }

  const TestFolder folder_;
  DigitsOptions options_;
};

TEST_F(DigitsTest, AreTheSameBytesForTheSameOptions) {
  options_.shards = 2;
  const auto first = files(make("first")), second = files(make("second"));
  EXPECT_EQ(first, second);
  std::set<std::string> names;
  for (const auto& [name, bytes] : first) names.insert(name);
  for (const char* name :
       {"label_map.pbtxt", "train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord",
        "validation-00000-of-00001.tfrecord", "coco/train.json", "coco/train/000008.jpg",
        "coco/validation.json", "coco/validation/000000.jpg"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_EQ(names.size(), 6 + 9u + 4u);
  options_.seed = 2;
  const auto other = files(make("other"));
  EXPECT_EQ(other.at("label_map.pbtxt"), first.at("label_map.pbtxt"));
  EXPECT_NE(other.at("coco/train.json"), first.at("coco/train.json"));
  EXPECT_NE(other.at("coco/train/000000.jpg"), first.at("coco/train/000000.jpg"));
}

TEST_F(DigitsTest, AreInBoxesWithinTheCanvas) {
  const auto dataset = records(make("digits"), "train");
  const std::vector<RowObjects> rows = objects_of(*dataset);
  ASSERT_EQ(rows.size(), 9u);
  for (uint64_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].height, 64);
    EXPECT_EQ(rows[i].width, 64);
    EXPECT_GE(rows[i].objects.size(), 1u);
    EXPECT_LE(rows[i].objects.size(), options_.most_digits);
    const std::vector<std::byte> pixels = used(*dataset, {}, i, 0, i);
    const auto bright = [&](float y, float x) {
      const auto at = static_cast<size_t>(y * 64) * 64 + static_cast<size_t>(x * 64);
      return std::to_integer<int>(pixels[at * 3]) >= 110;  // the ground is below 95
    };
    for (const auto& [box, label, weight, crowd, area] : rows[i].objects) {
      EXPECT_TRUE(box.ymin >= 0 && box.xmin >= 0 && box.ymax <= 1 && box.xmax <= 1);
      EXPECT_LT(box.ymin, box.ymax);
      EXPECT_LT(box.xmin, box.xmax);
      EXPECT_TRUE(bright((box.ymin + box.ymax) / 2, (box.xmin + box.xmax) / 2)) << i;
      EXPECT_LT(label, 5);
    }
  }
}

TEST_F(DigitsTest, HaveALabelMapOfTenDigits) {
  const auto map = records::LabelMap::read(make("digits") / "label_map.pbtxt");
  ASSERT_EQ(map.entries().size(), 10u);
  for (int digit = 0; digit < 10; ++digit) EXPECT_EQ(map.id_of(std::to_string(digit)), digit + 1);
}

TEST_F(DigitsTest, AreTheSameAsRecordsAndAsCoco) {
  const fs::path folder = make("digits");
  for (const char* part : {"train", "validation"}) {
    const auto from_records = records(folder, part), from_coco = coco(folder, part);
    EXPECT_EQ(from_records->object_classes(), 10);
    EXPECT_EQ(from_coco->object_classes(), 10);
    ASSERT_EQ(from_records->size(), from_coco->size());
    std::vector<RowObjects> wanted = objects_of(*from_records), found = objects_of(*from_coco);
    for (auto* rows : {&wanted, &found})
      for (RowObjects& row : *rows)
        for (detection::Object& object : row.objects) object.area = std::round(object.area);
    EXPECT_EQ(found, wanted) << part;
    for (uint64_t i = 0; i < from_coco->size(); ++i)
      EXPECT_EQ(used(*from_records, {}, i, 0, i), used(*from_coco, {}, i, 0, i)) << part << i;
  }
}

TEST_F(DigitsTest, OfTheLastSixthAreSeenInValidationAlone) {
  const fs::path folder = make("digits");
  for (const RowObjects& row : objects_of(*records(folder, "validation")))
    for (const detection::Object& object : row.objects) EXPECT_EQ(object.label, 9);
  for (const RowObjects& row : objects_of(*records(folder, "train")))
    for (const detection::Object& object : row.objects) EXPECT_LT(object.label, 9);
}

TEST_F(DigitsTest, TakeThePlaceOfAnEarlierSet) {
  options_.shards = 3;
  options_.train = 7;
  make("again");
  options_.shards = 2;
  options_.train = 5;
  const fs::path folder = make("again");
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{
                       "coco", "label_map.pbtxt", "train-00000-of-00002.tfrecord",
                       "train-00001-of-00002.tfrecord", "validation-00000-of-00001.tfrecord"}));
  EXPECT_EQ(std::ranges::distance(fs::directory_iterator(folder / "coco/train")), 5);
}

TEST_F(DigitsTest, LeaveFilesOfOthersAlone) {
  const fs::path folder = folder_.path() / "mixed";
  fs::create_directories(folder);
  const fs::path other = folder / "train-00000-of-00010.tfrecord";
  write_file_atomically(other, "somebody's");
  make("mixed");
  EXPECT_EQ(read_file(other), "somebody's");
}

TEST_F(DigitsTest, AreRefusedForOptionsThatCannotBe) {
  options_.size = 31;
  EXPECT_EQ(refusal(), "--size: expected 32 to 2048, found 31");
  options_.size = 64;
  options_.most_digits = 0;
  EXPECT_EQ(refusal(), "--most-digits: expected 1 to 100, found 0");
  options_.most_digits = 4;
  options_.shards = 1001;
  EXPECT_EQ(refusal(), "--shards: expected 1 to 1000, found 1001");
  options_.shards = 1;
  options_.train = 0;
  EXPECT_EQ(refusal(), "--train: expected 1 to 1000000, found 0");
  options_.train = 1;
  options_.labels = folder_.write("few", labels_of({1, 2, 3}));
  EXPECT_THAT(refusal(), HasSubstr("few"));
  EXPECT_FALSE(fs::exists(folder_.path() / "refused"));
}

}  // namespace
}  // namespace muster::data
