#include "trainer/data/images/corrupt_samples.h"

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::HasSubstr;
using testing::Not;

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
  corrupt.add_odd(9, "b.jpg: extraneous bytes");
  EXPECT_EQ(corrupt.count(), 0u);
}

// Returns what is logged while `fill` adds to samples of which all may be damaged, and afterwards.
template <class Fill>
std::string log_of(const Fill& fill) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    CorruptSamples corrupt(100, 1);
    fill(corrupt);
  }
  return testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
}

TEST(CorruptSamples, AreCountedToTheEndWhereNotAllAreNamed) {
  const std::string odd = log_of([](CorruptSamples& corrupt) {
    for (uint64_t use = 0; use < 60; ++use) corrupt.add_odd(use % 30, "irregular");
  });
  EXPECT_THAT(
      odd,
      HasSubstr("30 of 100 samples were irregular and used, and the first 10 of these were named"));
  EXPECT_THAT(odd, Not(HasSubstr("samples were damaged")));
  const std::string damaged = log_of([](CorruptSamples& corrupt) {
    for (uint64_t use = 0; use < 20; ++use) corrupt.add(use, "damaged");
    corrupt.add_unnumbered("damaged");
  });
  EXPECT_THAT(damaged,
              HasSubstr("21 of 100 samples were damaged, and the first 10 of these were named"));
  EXPECT_THAT(damaged, Not(HasSubstr("irregular")));
  const std::string few = log_of([](CorruptSamples& corrupt) {
    for (uint64_t i = 0; i < 10; ++i) corrupt.add_odd(i, "irregular " + std::to_string(i) + ".");
  });
  for (int i = 0; i < 10; ++i) EXPECT_THAT(few, HasSubstr("irregular " + std::to_string(i) + "."));
  EXPECT_THAT(few, Not(HasSubstr("samples were")));
}

TEST(CorruptSamples, MayBeNoneOrAll) {
  CorruptSamples none(1000, 0), all(1, 1);
  EXPECT_THROW(none.add(0, ""), Invalid);
  EXPECT_NO_THROW(all.add(0, ""));
}

}  // namespace
}  // namespace muster::data
