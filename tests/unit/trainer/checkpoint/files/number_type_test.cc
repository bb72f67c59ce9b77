#include "trainer/checkpoint/files/number_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace muster::checkpoint {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Bits>
std::vector<float> read(const char* name, std::vector<Bits> numbers) {
  const NumberType* type = find_number_type(name);
  std::vector<float> values(numbers.size());
  EXPECT_EQ(type->bytes, sizeof(Bits));
  type->read(std::as_bytes(std::span(numbers)), values);
  return values;
}

// The bits are those of IEEE 754: ones, the largest and smallest numbers, and those below them.
TEST(NumberType, ReadsHalves) {
  EXPECT_EQ(read<uint16_t>("F16", {0x0000, 0x3c00, 0xc000, 0x3555, 0x7bff, 0x0400, 0x03ff, 0x8001,
                                   0x7c00, 0xfc00}),
            (std::vector<float>{0, 1, -2, 0x1.554p-2f, 65504, 0x1p-14f, 0x3ffp-24f, -0x1p-24f,
                                kInfinity, -kInfinity}));
  EXPECT_TRUE(std::isnan(read<uint16_t>("F16", {0x7e00})[0]));
  EXPECT_TRUE(std::signbit(read<uint16_t>("F16", {0x8000})[0]));
}

TEST(NumberType, ReadsUpperHalvesOfFloats) {
  EXPECT_EQ(read<uint16_t>("BF16", {0x0000, 0x3f80, 0xc020, 0x7f7f, 0x0001, 0xff80}),
            (std::vector<float>{0, 1, -2.5f, 0x1.fep127f, 0x1p-133f, -kInfinity}));
  EXPECT_TRUE(std::isnan(read<uint16_t>("BF16", {0x7fc0})[0]));
}

TEST(NumberType, RoundsDoubles) {
  EXPECT_EQ(read<double>("F64", {1, -0.1, 1e-50, 1e300}),
            (std::vector<float>{1, -0.1f, 0, kInfinity}));
  EXPECT_EQ(read<float>("F32", {1, -0.1f}), (std::vector<float>{1, -0.1f}));
}

TEST(NumberType, KnowsNoOther) {
  for (const char* name : {"I64", "BOOL", "F8_E4M3", "f32", ""})
    EXPECT_EQ(find_number_type(name), nullptr) << name;
}

}  // namespace
}  // namespace muster::checkpoint
