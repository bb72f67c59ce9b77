#include "trainer/group/position.h"

#include <gtest/gtest.h>

#include "tests/unit/trainer/compute/sums.h"

namespace muster::group {
namespace {

TEST(PositionTest, ComesBackFromItsMessageAsItWas) {
  checkpoint::Position position;
  position.step = 120;
  position.epoch = 2;
  position.next_batch = 7;
  position.optimizer_t = 119;
  position.outstanding = {3, 5};
  position.sums.add(1, compute::testing::classified(1.25, 3, 32));
  position.evaluations = {2,  checkpoint::Best{0.1, 100, 1}, 1,
                          {}, checkpoint::Best{0.2, 120, 2}, 118};
  const checkpoint::Position found = from_message(to_message(position));
  EXPECT_EQ(found.step, position.step);
  EXPECT_EQ(found.epoch, position.epoch);
  EXPECT_EQ(found.next_batch, position.next_batch);
  EXPECT_EQ(found.optimizer_t, position.optimizer_t);
  EXPECT_EQ(found.outstanding, position.outstanding);
  EXPECT_EQ(found.sums.of(1).loss, 1.25);
  EXPECT_EQ(found.evaluations, position.evaluations);
  EXPECT_FALSE(to_message(checkpoint::Position()).has_evaluations());
}

}  // namespace
}  // namespace muster::group
