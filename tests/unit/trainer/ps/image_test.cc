#include <gmock/gmock.h>

#include <deque>
#include <optional>
#include <set>

#include "tests/unit/trainer/one_tensor.h"
#include "trainer/ps/shard/shard.h"

namespace muster::ps {
namespace {

constexpr size_t kFloats = 20000;  // several blocks of an update
using Policy = SyncPolicy;
using Values = compute::Floats;

// A shard of one member, with Adam's two slots.
class ImageTest : public testing::TestWithParam<Policy> {
 protected:
  ImageTest()
      : layout_(layout_of(kFloats)),
        optimizer_(compute::Optimizer::create(compute::Adam{}, layout_)) {
    schedule_.learning_rate = 0.1;
  }

  static Shard::Content content() {
    Shard::Content content;
    content.parameters.assign(kFloats, 1);
    content.slots.assign(2, Values(kFloats));
    return content;
  }
  Shard& make() {
    Shard::Shape shape;
    shape.range = {0, kFloats};
    shape.policy = GetParam();
    Shard& shard = shards_.emplace_back(shape, *optimizer_, schedule_, 2);
    begin(shard);
    return shard;
  }
  void begin(Shard& shard) {
    shard.load(content());
    Shard::Answers answers;
    shard.begin(++generation_, 1, Tickets(0, 1000, {}, 1000), answers);
  }
  void step(Shard& shard, int64_t rows = 2) {
    PushHeader header;
    header.generation = shard.generation();
    header.step = shard.step();
    header.sequence = ++sequence_;
    header.sums.rows = rows;
    header.sums.weight = static_cast<double>(header.sums.rows);
    for (size_t i = 0; i < kFloats; ++i)
      gradients_[i] = static_cast<float>((i + shard.step()) % 7) - 3;
    Shard::Answers answers;
    shard.push(1, header, {gradients_, {}}, answers);
    ASSERT_EQ(answers.size(), 1u);
  }

  struct Held {
    Values parameters;
    std::vector<Values> slots;
    bool operator==(const Held&) const = default;
  };
  static Held copy(std::span<const float> parameters, const auto& slots) {
    Held held{{parameters.begin(), parameters.end()}, {}};
    for (const auto& slot : slots) held.slots.emplace_back(slot.begin(), slot.end());
    return held;
  }
  static Held copy(const Shard& shard) { return copy(shard.parameters(), shard.slots()); }
  static Held copy(const Shard::Image& image) {
    std::vector<std::span<const float>> slots;
    for (const auto& slot : image.slots) slots.emplace_back(*slot);
    return copy(*image.parameters, slots);
  }

  compute::ParameterLayout layout_;
  std::unique_ptr<compute::Optimizer> optimizer_;
  compute::Schedule schedule_;
  std::deque<Shard> shards_;
  Values gradients_ = Values(kFloats);
  uint64_t generation_ = 0;
  uint64_t sequence_ = 0;
};

TEST_P(ImageTest, StaysAsItWasWhileTheShardGoesOn) {
  Shard& shard = make();
  step(shard);
  const Held before = copy(shard);
  const Shard::Image image = shard.image();
  EXPECT_EQ(image.parameters->data(), shard.parameters().data());  // nothing is copied
  for (int i = 0; i < 4; ++i) {
    step(shard);
    EXPECT_EQ(copy(image), before);
  }
  begin(shard);
  step(shard);
  EXPECT_EQ(copy(image), before);
}

TEST_P(ImageTest, ChangesNoBitOfWhatFollows) {
  Shard& shard = make();
  Shard& undisturbed = make();
  std::optional<Shard::Image> image;
  for (int i = 0; i < 12; ++i) {
    if (i % 3 == 1) image = shard.image();
    step(shard, i == 7 ? 0 : 2);
    step(undisturbed, i == 7 ? 0 : 2);
    EXPECT_EQ(copy(shard), copy(undisturbed));
    if (i % 3 == 2) image.reset();
  }
}

TEST_P(ImageTest, WhatIsLetGoIsUsedAgain) {
  Shard& shard = make();
  std::set<const float*> seen;
  for (int i = 0; i < 30; ++i) {
    const Shard::Image image = shard.image();
    for (int steps = 0; steps < 3; ++steps) {
      step(shard);
      seen.insert(shard.parameters().data());
      for (const auto slot : shard.slots()) seen.insert(slot.data());
    }
  }
  EXPECT_LE(seen.size(), 7u);  // three for the parameters, two for each slot
}

INSTANTIATE_TEST_SUITE_P(Policies, ImageTest, testing::Values(Policy::sync, Policy::async),
                         [](const auto& info) {
                           return info.param == Policy::sync ? "Sync" : "Async";
                         });

}  // namespace
}  // namespace muster::ps
