#include "trainer/data/images/corrupt_samples.h"

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::HasSubstr;

TEST(CorruptSamples, AreCountedOnceEach) {
  CorruptSamples corrupt(100, 0.03);
  corrupt.add(7, "a");
  corrupt.add(7, "a");
  corrupt.add(8, "b");
  corrupt.add_unnumbered("c");
  EXPECT_EQ(corrupt.count(), 3u);
}

TEST(CorruptSamples, EndTheJobBeyondTheShare) {
  CorruptSamples corrupt(100, 0.02);
  corrupt.add(7, "a");
  corrupt.add(8, "b");
  corrupt.add(8, "b");
  try {
    corrupt.add(9, "train-0: record 9");
    FAIL() << "no error";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), HasSubstr("train-0: record 9"));
    EXPECT_THAT(error.what(), HasSubstr("at most a share of 0.02 of 100, as maxCorrupt says, found "
                                        "3"));
  }
}

// A batch that was made ahead and is dropped takes with it what was thrown in it.
TEST(CorruptSamples, EndTheJobThoughTheFirstToSayItWasNotHeard) {
  CorruptSamples corrupt(100, 0);
  EXPECT_THROW(corrupt.add(7, "a"), Invalid);
  EXPECT_THROW(corrupt.add(7, "a"), Invalid);
  EXPECT_EQ(corrupt.count(), 1u);
}

TEST(CorruptSamples, AreNotThoseThatAreUsedAlthoughTheyAreIrregular) {
  CorruptSamples corrupt(100, 0);
  corrupt.add_odd(7, "a.jpg: extraneous bytes");
  corrupt.add_odd(7, "a.jpg: extraneous bytes");
  corrupt.add_odd(9, "b.jpg: extraneous bytes");
  EXPECT_EQ(corrupt.odd_count(), 2u);
  EXPECT_EQ(corrupt.count(), 0u);
}

TEST(CorruptSamples, MayBeNoneOrAll) {
  CorruptSamples none(1000, 0), all(1, 1);
  EXPECT_THROW(none.add(0, ""), Invalid);
  EXPECT_NO_THROW(all.add(0, ""));
}

}  // namespace
}  // namespace muster::data
