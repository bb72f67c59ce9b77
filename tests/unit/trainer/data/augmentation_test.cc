#include "trainer/data/augmentation.h"

#include <map>
#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trainer/data/memory_dataset.h"

namespace muster::data {
namespace {

using testing::ElementsAre;

// Images of so many bytes that count from 1, and one for each further image.
MemoryDataset images(uint64_t count, std::vector<int64_t> shape) {
  Samples samples;
  samples.origins = {{0, "images", 0}};
  samples.count = count;
  samples.type = compute::ElementType::uint8;
  size_t bytes = count;
  for (const int64_t axis : shape) bytes *= static_cast<size_t>(axis);
  samples.shape = std::move(shape);
  samples.features = Storage(bytes);
  for (size_t i = 0; i < bytes; ++i) samples.features.bytes()[i] = std::byte(i % 255 + 1);
  return MemoryDataset(std::move(samples));
}

std::vector<int> used(const MemoryDataset& dataset, const Augmentation& augmentation,
                      uint64_t index, uint64_t epoch, uint64_t position) {
  std::vector<std::byte> bytes(dataset.sample_bytes());
  Sample workspace;
  augmentation.apply(dataset, index, epoch, position, bytes.data(), workspace);
  std::vector<int> values;
  for (const std::byte byte : bytes) values.push_back(static_cast<int>(byte));
  return values;
}

TEST(Augmentation, FlipsEachRowOfPixels) {
  const Augmentation always({spec::Flip{1.0}}, 7), never({spec::Flip{0.0}}, 7);
  const MemoryDataset grey = images(1, {2, 3}), coloured = images(1, {1, 3, 2});
  for (uint64_t position = 0; position < 20; ++position) {
    EXPECT_THAT(used(grey, always, 0, 0, position), ElementsAre(3, 2, 1, 6, 5, 4));
    EXPECT_THAT(used(grey, never, 0, 0, position), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(used(coloured, always, 0, 0, position), ElementsAre(5, 6, 3, 4, 1, 2));
  }
}

TEST(Augmentation, FlipsTheShareItIsAskedFor) {
  const Augmentation quarter({spec::Flip{0.25}}, 7);
  const MemoryDataset dataset = images(1, {1, 2});
  int flipped = 0;
  for (uint64_t i = 0; i < 4000; ++i)
    flipped += used(dataset, quarter, 0, i / 100, i % 100)[0] == 2;
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
  const MemoryDataset dataset(std::move(samples));
  std::vector<float> values(3);
  Sample workspace;
  Augmentation({spec::Flip{1.0}}, 1)
      .apply(dataset, 0, 0, 0, reinterpret_cast<std::byte*>(values.data()), workspace);
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
  const MemoryDataset dataset = images(1, {4, 5});
  std::map<std::vector<int>, int> seen;
  for (uint64_t i = 0; i < 5000; ++i) ++seen[used(dataset, shift, 0, 1, i)];
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
  const MemoryDataset dataset = images(3, {6, 7});
  std::set<std::vector<int>> by_seed, by_epoch, by_position;
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(used(dataset, augmentation, 2, i, 3), used(dataset, again, 2, i, 3));
    by_epoch.insert(used(dataset, augmentation, 2, i, 3));
    by_position.insert(used(dataset, augmentation, 2, 0, i));
    by_seed.insert(used(dataset, i % 2 == 0 ? augmentation : other, 2, 0, 3));
  }
  EXPECT_GT(by_epoch.size(), 5u);
  EXPECT_GT(by_position.size(), 5u);
  EXPECT_EQ(by_seed.size(), 2u);
}

// Each stage draws numbers of its own: the first does not decide what the second does.
TEST(Augmentation, StagesDrawApart) {
  const Augmentation twice({spec::Flip{0.5}, spec::Flip{0.5}}, 5);
  const MemoryDataset dataset = images(1, {1, 2});
  int flipped = 0;
  for (uint64_t i = 0; i < 400; ++i) flipped += used(dataset, twice, 0, 0, i)[0] == 2;
  EXPECT_GT(flipped, 140);
  EXPECT_LT(flipped, 260);
}

}  // namespace
}  // namespace muster::data
