#include "trainer/detection/objects.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::detection::testing {
namespace {

const std::vector<Object> kObjects = {{{0, 0.25f, 0.5f, 1}, 3, 0.5f, false, 120},
                                      {{0.1f, 0.2f, 0.3f, 0.4f}, 0, 1, true, 7}};

TEST(Objects, AreReadAsTheyWereWritten) {
  for (const size_t most : {2, 3, 100}) {
    std::vector<float> target(ObjectList::floats(most), 9);
    write_objects(480, 640, kObjects, target);
    const ObjectList list(target);
    EXPECT_EQ(list.height(), 480);
    EXPECT_EQ(list.width(), 640);
    ASSERT_EQ(list.size(), 2u);
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(list.at(i), kObjects[i]);
  }
}

TEST(Objects, ThatHaveNoRoomAreLeftOut) {
  std::vector<float> target(ObjectList::floats(1));
  write_objects(1, 1, kObjects, target);
  ASSERT_EQ(ObjectList(target).size(), 1u);
  EXPECT_EQ(ObjectList(target).at(0), kObjects[0]);
  target.resize(ObjectList::floats(0));
  write_objects(1, 1, kObjects, target);
  EXPECT_EQ(ObjectList(target).size(), 0u);
}

TEST(Objects, MayBeNone) {
  std::vector<float> target(ObjectList::floats(4), 1);
  write_objects(1, 1, {}, target);
  EXPECT_EQ(ObjectList(target).size(), 0u);
}

}  // namespace
}  // namespace muster::detection::testing
