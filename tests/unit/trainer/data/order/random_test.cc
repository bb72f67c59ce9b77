#include "trainer/data/order/random.h"

#include "gtest/gtest.h"

namespace muster::data {
namespace {

// A data set and the order of its epochs may have one seed: no epoch draws what the data drew.
TEST(Streams, OfOneSeedShareNothing) {
  constexpr Stream kSynthetic[] = {Stream::synthetic_input,  Stream::synthetic_noise,
                                   Stream::synthetic_label,  Stream::synthetic_centre,
                                   Stream::synthetic_spread, Stream::synthetic_presence};
  for (uint64_t epoch = 0; epoch < 1000; ++epoch) {
    const CounterRandom order(1, Stream::epoch_order, epoch);
    for (const Stream stream : kSynthetic) {
      const CounterRandom data(1, stream);
      ASSERT_NE(order.bits(0), data.bits(0)) << epoch;
      ASSERT_NE(order.bits(7), data.bits(7)) << epoch;
    }
  }
}

TEST(Streams, GiveTheSameValueForTheSameCounter) {
  const CounterRandom one(5, Stream::synthetic_label), same(5, Stream::synthetic_label);
  const CounterRandom other(5, Stream::synthetic_noise), seeded(6, Stream::synthetic_label);
  EXPECT_EQ(one.bits(3), same.bits(3));
  EXPECT_NE(one.bits(3), one.bits(4));
  EXPECT_NE(one.bits(3), other.bits(3));
  EXPECT_NE(one.bits(3), seeded.bits(3));
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_LT(one.below(i, 7), 7u);
}

}  // namespace
}  // namespace muster::data
