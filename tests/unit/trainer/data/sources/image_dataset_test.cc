#include "trainer/data/sources/image_dataset.h"

#include "common/error.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "tests/unit/trainer/data/images/pictures.h"
#include "trainer/data/batches/pipeline.h"
#include "trainer/records/example.h"
#include "trainer/records/record_writer.h"

namespace muster::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kImages = 12;

// So many JPEGs and PNGs of different sizes, in turn of class a and b.
void put_images(const std::filesystem::path& folder) {
  for (int i = 0; i < kImages; ++i) {
    const std::string name = (i % 2 == 0 ? "a/" : "b/") + std::to_string(10 + i);
    const auto height = static_cast<size_t>(20 + i), width = static_cast<size_t>(40 - i);
    put(folder / (name + (i % 3 == 0 ? ".png" : ".jpg")),
        i % 3 == 0 ? png(i, height, width) : jpeg(i, height, width));
  }
}

struct Batches {
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  std::vector<uint64_t> positions;

  bool operator==(const Batches&) const = default;
};

void add(const Dataset& dataset, const compute::Batch& batch, Batches& batches) {
  for (const void* sample : batch.features) {
    const auto* bytes = static_cast<const uint8_t*>(sample);
    batches.pixels.insert(batches.pixels.end(), bytes, bytes + dataset.format().bytes());
  }
  batches.labels.insert(batches.labels.end(), batch.labels.begin(), batch.labels.end());
  batches.positions.insert(batches.positions.end(), batch.positions.begin(), batch.positions.end());
}

// All batches of two epochs.
Batches two_epochs(const Dataset& dataset, int threads,
                   const std::vector<spec::StageKind>& stages = {}, bool shuffle = true) {
  Pipeline pipeline(
      Batcher(dataset, Shards::by_record(dataset.size(), {.rows = 5}), shuffle, 3, stages), 4,
      threads);
  Batches batches;
  Cursor cursor;
  const uint64_t per_epoch = quotient_up<uint64_t>(dataset.size(), 5);
  for (uint64_t i = 0; i < 2 * per_epoch; ++i, cursor = cursor.next(per_epoch))
    add(dataset, pipeline.take(cursor), batches);
  return batches;
}

std::vector<uint8_t> sample_of(const Dataset& dataset, uint64_t index,
                               const std::vector<spec::StageKind>& stages = {}) {
  std::vector<uint8_t> pixels;
  for (const std::byte byte : used(dataset, Augmentation(stages, 1), index, 0, index))
    pixels.push_back(std::to_integer<uint8_t>(byte));
  return pixels;
}

std::string error_of_source(const spec::DataSource& source) {
  try {
    two_epochs(*open_dataset(source), 1);
  } catch (const Invalid& error) {
    return error.what();
  }
  return "no error";
}

const std::vector<spec::StageKind> kStages = {spec::RandomCrop{}, spec::Flip{}, spec::Colour{},
                                              spec::Shift{1}, spec::RandomCrop{{0.5, 0.9}}};

TEST(ImageDataset, IsWhatTheFilesAndTheSettingsSay) {
  const TestFolder folder;
  put_images(folder.path());
  spec::ImageSettings images = settings(8, 10);
  images.scale = 2.0f / 255;
  images.offset = -1;
  const auto dataset = open_dataset(folder_source(folder.path(), images));
  EXPECT_EQ(dataset->size(), 12u);
  EXPECT_THAT(dataset->format().shape, ElementsAre(8, 10, 3));
  EXPECT_EQ(dataset->label_count(), 2);
  EXPECT_EQ(dataset->label_kind(), compute::LabelKind::classes);
  EXPECT_EQ(dataset->effort(), Effort::work);
  EXPECT_TRUE(dataset->stored().empty());
  EXPECT_EQ(dataset->format().type, compute::ElementType::uint8);
  EXPECT_EQ(dataset->format().scale, 2.0f / 255);
  EXPECT_EQ(dataset->format().offset, -1);
  EXPECT_EQ(dataset->format().bytes(), 240u);
  EXPECT_EQ(dataset->label(0), 0);
  EXPECT_EQ(dataset->label(1), 1);
  EXPECT_THAT(dataset->describe(2), HasSubstr("a/12.jpg"));
  images::Image wanted;
  images::Resizer().resize(picture(3, 23, 37).view(), 8, 10, wanted);
  EXPECT_EQ(sample_of(*dataset, 3), wanted.pixels);
}

TEST(ImageDataset, TakesTheBrightnessForOneChannel) {
  const TestFolder folder;
  images::Image image;
  image.resize(1, 3);
  image.pixels = {255, 0, 0, 0, 255, 0, 10, 10, 10};
  put(folder.path() / "a/1.png", images::encode_png(image.view()));
  const auto dataset = open_dataset(folder_source(folder.path(), settings(1, 3, 1)));
  EXPECT_THAT(dataset->format().shape, ElementsAre(1, 3, 1));
  EXPECT_THAT(sample_of(*dataset, 0), ElementsAre(76, 150, 10));
}

TEST(ImageDataset, GivesTheSameBitsForAnyThreadsAndPlace) {
  const TestFolder folder;
  put_images(folder.path());
  spec::DataSource source = folder_source(folder.path());
  const auto dataset = open_dataset(source);
  source.cache = false;
  const auto on_disk = open_dataset(source);
  const Batches one = two_epochs(*dataset, 1, kStages);
  EXPECT_EQ(one.labels.size(), 24u);
  for (const int threads : {2, 3}) {
    EXPECT_EQ(two_epochs(*dataset, threads, kStages), one) << threads;
    EXPECT_EQ(two_epochs(*on_disk, threads, kStages), one) << threads;
  }
  EXPECT_NE(two_epochs(*dataset, 1).pixels, one.pixels);
}

TEST(ImageDataset, IsTheSameFromListsAndRecords) {
  const TestFolder folder;
  put_images(folder.path() / "images");
  const auto dataset = open_dataset(folder_source(folder.path() / "images"));
  std::string list;
  records::RecordWriter records(folder.path() / "train-0-of-1.tfrecord");
  for (uint64_t i = 0; i < dataset->size(); ++i) {
    list += dataset->describe(i) + "," + std::to_string(dataset->label(i)) + "\n";
    records.write(records::write_example(
        {.image = read_file(dataset->describe(i)), .label = dataset->label(i) + 1, .text = ""}));
  }
  records.finish();
  put(folder.path() / "list.csv", list);
  const Batches wanted = two_epochs(*dataset, 1, kStages);

  spec::DataSource csv;
  csv.kind = spec::ImageCsvSource{folder.path() / "list.csv", "", {}, settings(8, 10)};
  EXPECT_EQ(two_epochs(*open_dataset(csv), 2, kStages), wanted);
  spec::RecordSource record_source;
  record_source.files = {folder.path() / "train-*-of-*.tfrecord"};
  record_source.images = settings(8, 10);
  spec::DataSource tf_record;
  tf_record.kind = record_source;
  for (const bool cache : {true, false}) {
    tf_record.cache = cache;
    const auto opened = open_dataset(tf_record);
    EXPECT_EQ(opened->label_count(), 2);
    EXPECT_EQ(two_epochs(*opened, 3, kStages), wanted) << cache;
  }
}

// The order of the epoch, the other samples and what chance does to them stay as they are.
TEST(ImageDataset, PutsTheNextSampleInThePlaceOfADamagedOne) {
  const TestFolder folder;
  put_images(folder.path());
  spec::ImageSettings images = settings(8, 10);
  images.max_corrupt = 0.2;
  const spec::DataSource source = folder_source(folder.path(), images);
  const auto whole = open_dataset(source);
  const Batches before = two_epochs(*whole, 1, {}, false);
  const std::string cut = read_file(whole->describe(5)).substr(0, 200);
  put(whole->describe(5), cut);
  put(whole->describe(11), "no image");
  const auto damaged = open_dataset(source);
  EXPECT_EQ(damaged->size(), 12u);
  Batches wanted = before;
  for (const uint64_t epoch : {0, 12}) {
    for (const auto& [to, from] : {std::pair(5, 6), std::pair(11, 0)}) {
      wanted.labels[epoch + to] = wanted.labels[epoch + from];
      std::copy_n(&wanted.pixels[(epoch + from) * 240], 240, &wanted.pixels[(epoch + to) * 240]);
    }
  }
  EXPECT_EQ(two_epochs(*damaged, 1, {}, false), wanted);
  const Batches augmented = two_epochs(*open_dataset(source), 1, kStages);
  for (const int threads : {2, 3}) {
    EXPECT_EQ(two_epochs(*damaged, threads, {}, false), wanted);
    EXPECT_EQ(two_epochs(*open_dataset(source), threads, kStages), augmented);
  }
}

TEST(ImageDataset, FailsWhereTooManyAreDamaged) {
  const TestFolder folder;
  put_images(folder.path());
  put(folder.path() / "a/12.jpg", "no image");
  EXPECT_THAT(
      error_of_source(folder_source(folder.path())),
      AllOf(HasSubstr("a/12.jpg: expected a JPEG or PNG, found bytes that begin with 6e 6f"),
            HasSubstr("expected at most a share of 0.01 of 12, as maxCorrupt says, found "
                      "1")));
  spec::ImageSettings images = settings(8, 10);
  images.max_corrupt = 1;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    if (entry.is_regular_file()) put(entry.path(), "no image");
  EXPECT_THAT(error_of_source(folder_source(folder.path(), images)),
              HasSubstr("expected a JPEG or PNG"));
}

TEST(ImageDataset, MissesAFileThatIsGone) {
  const TestFolder folder;
  put_images(folder.path());
  for (const bool cache : {true, false}) {
    spec::DataSource source;
    source.kind = spec::ImageCsvSource{
        folder.write("list.csv", "a/10.png,0\nb/none.jpg,1\n"), "", {}, settings(8, 10)};
    source.cache = cache;
    EXPECT_THAT(error_of_source(source), HasSubstr("b/none.jpg"));
  }
}

// It is counted by the data set, and its pixels are those of the regular file.
TEST(ImageDataset, UsesAPictureThatIsIrregularWhereNoPixelDependsOnIt) {
  const TestFolder folder;
  const std::string regular = jpeg(1);
  put(folder.path() / "a/1.jpg", regular);
  put(folder.path() / "a/2.jpg", std::string(regular).insert(regular.size() - 2, 100, '\0'));
  spec::DataSource source = folder_source(folder.path());
  std::get<spec::ImageFolderSource>(source.kind).images.max_corrupt = 0;
  const auto dataset = open_dataset(source);
  Batcher batcher(*dataset, 2);
  BatchBuffer buffer(*dataset, 2);
  const compute::Batch& batch = batcher.fill(buffer, 0, 0);
  const auto* const first = static_cast<const std::byte*>(batch.features[0]);
  const auto* const second = static_cast<const std::byte*>(batch.features[1]);
  EXPECT_TRUE(std::equal(first, first + dataset->format().bytes(), second));
  Sample sample;
  std::vector<std::byte> pixels(dataset->format().bytes());
  Row row{.features_memory = pixels.data()};
  dataset->fill({.sample = 1}, {}, sample, row);
  EXPECT_NE(sample.oddity.find("2.jpg: "), std::string::npos) << sample.oddity;
}

TEST(ImageDataset, UsesThePartThatTheSelectionLeaves) {
  const TestFolder folder;
  put_images(folder.path());
  spec::DataSource source = folder_source(folder.path());
  const auto whole = open_dataset(source);
  source.skip = 3;
  source.take = 4;
  const auto part = open_dataset(source);
  EXPECT_EQ(part->size(), 4u);
  EXPECT_EQ(part->label_count(), 2);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(part->describe(i), whole->describe(i + 3));
  source.skip = 12;
  EXPECT_THAT(error_of_source(source),
              HasSubstr("skip: expected less than its 12 samples, found 12"));
}

}  // namespace
}  // namespace muster::data
