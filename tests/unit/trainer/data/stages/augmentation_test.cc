#include "trainer/data/stages/augmentation.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "tests/unit/trainer/data/images/objects.h"
#include "trainer/data/sources/stored_dataset.h"

namespace muster::data {
namespace {

using testing::ElementsAre;

// Images of so many bytes that count from 1, and one for each further image.
StoredDataset images(uint64_t count, std::vector<int64_t> shape) {
  Samples samples;
  samples.origins = {{0, "images", 0}};
  samples.count = count;
  samples.type = compute::ElementType::uint8;
  size_t bytes = count;
  for (const int64_t axis : shape) bytes *= static_cast<size_t>(axis);
  samples.shape = std::move(shape);
  samples.features = Storage(bytes);
  for (size_t i = 0; i < bytes; ++i) samples.features.bytes()[i] = std::byte(i % 255 + 1);
  return StoredDataset(std::move(samples));
}

std::vector<int> values_of(const Dataset& dataset, const Augmentation& augmentation, uint64_t index,
                           uint64_t epoch, uint64_t position) {
  std::vector<int> values;
  for (const std::byte byte : used(dataset, augmentation, index, epoch, position))
    values.push_back(static_cast<int>(byte));
  return values;
}

TEST(Augmentation, FlipsEachRowOfPixels) {
  const Augmentation always({spec::Flip{1.0}}, 7), never({spec::Flip{0.0}}, 7);
  const StoredDataset grey = images(1, {2, 3}), coloured = images(1, {1, 3, 2});
  for (uint64_t position = 0; position < 20; ++position) {
    EXPECT_THAT(values_of(grey, always, 0, 0, position), ElementsAre(3, 2, 1, 6, 5, 4));
    EXPECT_THAT(values_of(grey, never, 0, 0, position), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(values_of(coloured, always, 0, 0, position), ElementsAre(5, 6, 3, 4, 1, 2));
  }
}

TEST(Augmentation, FlipsTheShareItIsAskedFor) {
  const Augmentation quarter({spec::Flip{0.25}}, 7);
  const StoredDataset dataset = images(1, {1, 2});
  int flipped = 0;
  for (uint64_t i = 0; i < 4000; ++i)
    flipped += values_of(dataset, quarter, 0, i / 100, i % 100)[0] == 2;
  EXPECT_GT(flipped, 880);
  EXPECT_LT(flipped, 1120);
}

TEST(Augmentation, FlipsFloatsAsWholeElements) {
  Samples samples;
  samples.origins = {{0, "floats", 0}};
  samples.count = 1;
  samples.shape = {1, 3};
  samples.features = Storage(3 * sizeof(float));
  std::iota(samples.features.floats().begin(), samples.features.floats().end(), 1.5f);
  const StoredDataset dataset(std::move(samples));
  const std::vector<std::byte> bytes = used(dataset, Augmentation({spec::Flip{1.0}}, 1), 0, 0, 0);
  std::vector<float> values(3);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  EXPECT_THAT(values, ElementsAre(3.5f, 2.5f, 1.5f));
}

// The image moved by hand: what comes from outside is zero.
std::vector<int> moved(int height, int width, int down, int right) {
  std::vector<int> values;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int from_y = y - down, from_x = x - right;
      const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
      values.push_back(inside ? from_y * width + from_x + 1 : 0);
    }
  }
  return values;
}

TEST(Augmentation, ShiftsByEveryDistanceAlike) {
  const Augmentation shift({spec::Shift{2}}, 3);
  const StoredDataset dataset = images(1, {4, 5});
  std::map<std::vector<int>, int> seen;
  for (uint64_t i = 0; i < 5000; ++i) ++seen[values_of(dataset, shift, 0, 1, i)];
  ASSERT_EQ(seen.size(), 25u);
  for (int down = -2; down <= 2; ++down) {
    for (int right = -2; right <= 2; ++right) {
      const int times = seen[moved(4, 5, down, right)];
      EXPECT_GT(times, 130) << down << " " << right;
      EXPECT_LT(times, 270) << down << " " << right;
    }
  }
}

TEST(Augmentation, IsDecidedBySeedEpochAndPosition) {
  const std::vector<spec::StageKind> stages = {spec::Shift{3}, spec::Flip{0.5}, spec::Shift{1}};
  const Augmentation augmentation(stages, 5), again(stages, 5), other(stages, 6);
  const StoredDataset dataset = images(3, {6, 7});
  std::set<std::vector<int>> by_seed, by_epoch, by_position;
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(values_of(dataset, augmentation, 2, i, 3), values_of(dataset, again, 2, i, 3));
    by_epoch.insert(values_of(dataset, augmentation, 2, i, 3));
    by_position.insert(values_of(dataset, augmentation, 2, 0, i));
    by_seed.insert(values_of(dataset, i % 2 == 0 ? augmentation : other, 2, 0, 3));
  }
  EXPECT_GT(by_epoch.size(), 5u);
  EXPECT_GT(by_position.size(), 5u);
  EXPECT_EQ(by_seed.size(), 2u);
}

// A set of one picture of 40 x 60 pixels, each of whose values is the number of its row or column.
std::unique_ptr<Dataset> numbered_picture(const TestFolder& folder, size_t axis) {
  images::Image image;
  image.resize(40, 60);
  for (size_t y = 0; y < 40; ++y)
    for (size_t x = 0; x < 60; ++x)
      std::fill_n(image.row(y) + 3 * x, 3, static_cast<uint8_t>(axis == 0 ? y : x));
  put(folder.path() / "a/1.png", images::encode_png(image.view()));
  return open_dataset(folder_source(folder.path(), settings(20, 30)));
}

// Of an image whose values count rows or columns, how many of them its window has.
double length_of(const std::vector<int>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return most - least + 1;
}

TEST(Augmentation, CropsPartsOfTheAreaAndAspectThatAreAskedFor) {
  const TestFolder rows_folder, columns_folder;
  const auto rows = numbered_picture(rows_folder, 0), columns = numbered_picture(columns_folder, 1);
  const Augmentation crop({spec::RandomCrop{{0.2, 0.6}, {0.5, 2}}}, 3);
  double least_area = 1, most_area = 0, least_aspect = 9, most_aspect = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    const double height = length_of(values_of(*rows, crop, 0, 0, i));
    const double width = length_of(values_of(*columns, crop, 0, 0, i));
    least_area = std::min(least_area, height * width / 2400);
    most_area = std::max(most_area, height * width / 2400);
    least_aspect = std::min(least_aspect, width / height);
    most_aspect = std::max(most_aspect, width / height);
  }
  EXPECT_NEAR(least_area, 0.2, 0.05);
  EXPECT_NEAR(most_area, 0.6, 0.1);
  EXPECT_NEAR(least_aspect, 0.5, 0.15);
  EXPECT_NEAR(most_aspect, 2, 0.4);
}

// A shift by nothing has the pixels made: before it, a part of the file is taken, and behind it a
// part of the pixels. Where both are the same size, these are the same.
TEST(Augmentation, CropsTheFileOrThePixels) {
  const TestFolder folder;
  put(folder.path() / "a/1.png", png(1, 20, 30));
  const auto dataset = open_dataset(folder_source(folder.path(), settings(20, 30)));
  const spec::Shift none{0};
  const spec::RandomCrop whole{{1, 1}, {1.5, 1.5}}, part{{0.3, 0.5}};
  const std::vector<int> image = values_of(*dataset, Augmentation(), 0, 0, 1);
  EXPECT_EQ(values_of(*dataset, Augmentation({whole, none}, 3), 0, 0, 1), image);
  EXPECT_EQ(values_of(*dataset, Augmentation({none, whole}, 3), 0, 0, 1), image);
  EXPECT_NE(values_of(*dataset, Augmentation({none, part}, 3), 0, 0, 1), image);
  EXPECT_EQ(values_of(*dataset, Augmentation({none, part}, 3), 0, 0, 1),
            values_of(*dataset, Augmentation({none, part, none}, 3), 0, 0, 1));
  // The file and the pixels draw equally many numbers before the part is drawn.
  EXPECT_EQ(values_of(*dataset, Augmentation({whole, part, none}, 3), 0, 0, 1),
            values_of(*dataset, Augmentation({whole, part}, 3), 0, 0, 1));
}

// The picture has black and white columns by turns. Of half of its size, nothing is left of them.
TEST(Augmentation, CropsTheFileBehindAFlip) {
  const TestFolder folder;
  images::Image image;
  image.resize(40, 60);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(i / 3 % 2 * 255);
  put(folder.path() / "a/1.png", images::encode_png(image.view()));
  const auto dataset = open_dataset(folder_source(folder.path(), settings(20, 30)));
  const spec::RandomCrop part{{0.1, 0.2}};
  const auto spread = [&](const spec::StageKind& first) {
    const auto values = values_of(*dataset, Augmentation({first, part}, 3), 0, 0, 1);
    const auto [least, most] = std::ranges::minmax(values);
    return most - least;
  };
  EXPECT_GT(spread(spec::Flip{0}), 200);
  EXPECT_GT(spread(spec::Flip{1}), 200);
  EXPECT_LT(spread(spec::Shift{0}), 50);
}

TEST(Augmentation, CropsTheSamePartOfAMirroredImage) {
  const TestFolder folder;
  const auto columns = numbered_picture(folder, 1);
  const spec::RandomCrop part{{0.2, 0.6}};
  for (uint64_t position = 0; position < 20; ++position) {
    const auto plain = values_of(*columns, Augmentation({spec::Flip{0}, part}, 3), 0, 0, position);
    const auto mirrored =
        values_of(*columns, Augmentation({spec::Flip{1}, part}, 3), 0, 0, position);
    for (size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(mirrored[i], 59 - plain[i], 1) << i;
  }
}

TEST(Augmentation, ChangesColoursByTheAmountsThatAreAskedFor) {
  const TestFolder folder;
  images::Image image;
  image.resize(1, 2);
  image.pixels = {100, 100, 100, 120, 80, 100};
  put(folder.path() / "a/1.png", images::encode_png(image.view()));
  const auto dataset = open_dataset(folder_source(folder.path(), settings(1, 2)));
  const Augmentation none({spec::Colour{0, {1, 1}, 0, {1, 1}}}, 3);
  EXPECT_THAT(values_of(*dataset, none, 0, 0, 0), ElementsAre(100, 100, 100, 120, 80, 100));
  const Augmentation grey({spec::Colour{0, {0, 0}, 0, {1, 1}}}, 3);
  EXPECT_THAT(values_of(*dataset, grey, 0, 0, 0), ElementsAre(100, 100, 100, 120, 120, 120));
  const Augmentation flat({spec::Colour{0, {1, 1}, 0, {0, 0}}}, 3);
  EXPECT_THAT(values_of(*dataset, flat, 0, 0, 0), ElementsAre(110, 90, 100, 110, 90, 100));
  const Augmentation bright({spec::Colour{0.2, {1, 1}, 0, {1, 1}}}, 3);
  std::set<int> seen;
  for (uint64_t i = 0; i < 500; ++i) seen.insert(values_of(*dataset, bright, 0, 0, i)[0]);
  EXPECT_THAT(*seen.begin(), testing::AllOf(testing::Ge(49), testing::Le(52)));
  EXPECT_THAT(*seen.rbegin(), testing::AllOf(testing::Ge(148), testing::Le(151)));
}

// A black image with a white rectangle, which is its only object.
std::unique_ptr<Dataset> white_rectangle(const TestFolder& folder) {
  images::Image image;
  image.resize(40, 60);
  std::ranges::fill(image.pixels, uint8_t{0});
  for (size_t y = 12; y < 30; ++y) std::fill_n(image.row(y) + 3 * 10, 3 * 24, uint8_t{255});
  CocoFolder coco(folder.path());
  coco.add(image, {{1, {10, 12, 24, 18}, false}});
  return open_dataset(coco.source(settings(40, 60)));
}

// Whatever a stage does to the pixels, it does to the boxes: they surround what is white.
class BoxesOfStages : public testing::TestWithParam<std::vector<spec::StageKind>> {};

TEST_P(BoxesOfStages, GoWithThePixels) {
  const TestFolder folder;
  const auto dataset = white_rectangle(folder);
  const Augmentation augmentation(GetParam(), 3);
  std::vector<std::byte> pixels(dataset->format().bytes());
  std::vector<float> target(static_cast<size_t>(dataset->label_count()));
  Row row{.features_memory = pixels.data(), .target_memory = target.data()};
  Sample sample;
  std::set<float> seen;
  int kept = 0;
  for (uint64_t position = 0; position < 300; ++position) {
    dataset->fill({.position = position}, augmentation, sample, row);
    if (sample.boxes.empty()) continue;
    ASSERT_EQ(sample.boxes.size(), 1u);
    const images::Box& box = sample.boxes[0];
    double top = 40, left = 60, bottom = 0, right = 0;
    for (int y = 0; y < 40; ++y)
      for (int x = 0; x < 60; ++x) {
        if (std::to_integer<int>(pixels[static_cast<size_t>(y * 60 + x) * 3]) < 128) continue;
        top = std::min<double>(top, y), bottom = std::max<double>(bottom, y + 1);
        left = std::min<double>(left, x), right = std::max<double>(right, x + 1);
      }
    // What is less than a pixel wide may not be seen.
    if (box.height() * 40 < 2 || box.width() * 60 < 2) continue;
    ++kept;
    seen.insert(box.xmin);
    // A small part is enlarged: its pixels are coarse.
    ASSERT_NEAR(box.ymin * 40, top, 2) << position;
    ASSERT_NEAR(box.xmin * 60, left, 2) << position;
    ASSERT_NEAR(box.ymax * 40, bottom, 2) << position;
    ASSERT_NEAR(box.xmax * 60, right, 2) << position;
  }
  EXPECT_GT(kept, 100);
  EXPECT_GT(seen.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(
    Stages, BoxesOfStages,
    testing::Values(std::vector<spec::StageKind>{spec::Flip{0.5}},
                    std::vector<spec::StageKind>{spec::Shift{25}},
                    std::vector<spec::StageKind>{spec::RandomCrop{{0.2, 0.9}}},
                    std::vector<spec::StageKind>{spec::SsdRandomCrop{}},
                    std::vector<spec::StageKind>{spec::Flip{0.5}, spec::SsdRandomCrop{}},
                    std::vector<spec::StageKind>{spec::SsdRandomCrop{}, spec::Flip{0.5},
                                                 spec::Shift{5}, spec::SsdRandomCrop{}}),
    [](const auto& info) { return "Case" + std::to_string(info.index); });

// Each stage draws numbers of its own: the first does not decide what the second does.
TEST(Augmentation, StagesDrawApart) {
  const Augmentation twice({spec::Flip{0.5}, spec::Flip{0.5}}, 5);
  const StoredDataset dataset = images(1, {1, 2});
  int flipped = 0;
  for (uint64_t i = 0; i < 400; ++i) flipped += values_of(dataset, twice, 0, 0, i)[0] == 2;
  EXPECT_GT(flipped, 140);
  EXPECT_LT(flipped, 260);
}

}  // namespace
}  // namespace muster::data
