#include "trainer/collective/wire_floats.h"

#include <gtest/gtest.h>

#include <cstring>

namespace muster::collective {
namespace {

using compute::Range;

constexpr size_t kSize = 1000;

// What bfloat16 can hold.
WireFloats some(bool rounded) {
  WireFloats floats(kSize, rounded);
  for (size_t i = 0; i < kSize; ++i) floats.all()[i] = static_cast<float>(i % 256) * -0x1p-20f;
  return floats;
}

class WireFloatsTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Wires, WireFloatsTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Rounded" : "AsTheyAre"; });

TEST_P(WireFloatsTest, WhatIsSentArrivesAndNothingElse) {
  const Range range{3, 777};
  WireFloats from = some(GetParam());
  WireFloats to(kSize, GetParam());
  from.pack(range);
  ASSERT_EQ(from.bytes(range).iov_len, range.size() * (GetParam() ? 2 : 4));
  ASSERT_EQ(to.bytes(range).iov_len, from.bytes(range).iov_len);
  std::memcpy(to.bytes(range).iov_base, from.bytes(range).iov_base, from.bytes(range).iov_len);
  to.unpack(range);
  for (size_t i = 0; i < kSize; ++i) {
    const bool inside = range.begin <= i && i < range.end;
    ASSERT_EQ(to.all()[i], inside ? some(GetParam()).all()[i] : 0.0f) << i;
  }
}

TEST_P(WireFloatsTest, ARangeMayBeEmpty) {
  WireFloats floats = some(GetParam());
  floats.pack({kSize, kSize});
  EXPECT_EQ(floats.bytes({kSize, kSize}).iov_len, 0u);
  WireFloats none(0, GetParam());
  none.unpack({0, 0});
  EXPECT_EQ(none.bytes({0, 0}).iov_len, 0u);
}

}  // namespace
}  // namespace muster::collective
