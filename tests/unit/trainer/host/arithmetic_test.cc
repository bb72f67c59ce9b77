#include "trainer/host/arithmetic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "trainer/host/instruction_set.h"

namespace muster::host {
namespace {

struct Rounding {
  uint32_t from;  // the bits of a float
  uint16_t to;
};

constexpr Rounding kRoundings[] = {
    {0x3f800000, 0x3f80},                        // 1
    {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82},  // ties, to even
    {0x3f808001, 0x3f81}, {0x3f807fff, 0x3f80}, {0xbf818001, 0xbf82}, {0x00000000, 0x0000},
    {0x80000000, 0x8000}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80},  // infinities stay
    {0x7f7fffff, 0x7f80},                                              // the largest: too large
    {0x00018000, 0x0002}, {0x00000001, 0x0000},                        // subnormal
};

TEST(Bfloat16, RoundsToTheNearestOnEveryInstructionSet) {
  for (const InstructionSet set : instruction_sets()) {
    const Arithmetic& arithmetic = host::arithmetic(set);
    std::vector<float> in;
    for (int copies = 0; copies < 5; ++copies)
      for (const Rounding& rounding : kRoundings) in.push_back(std::bit_cast<float>(rounding.from));
    const auto n = static_cast<int64_t>(in.size());
    std::vector<unsigned char> bytes(2 * in.size() + 1);
    unsigned char* unaligned = bytes.data() + 1;
    arithmetic.to_bfloat16(n, in.data(), unaligned);
    std::vector<float> back(in.size()), rounded(in.size());
    arithmetic.from_bfloat16(n, unaligned, back.data());
    arithmetic.round_to_bfloat16(n, in.data(), rounded.data());
    for (size_t i = 0; i < in.size(); ++i) {
      const Rounding& expected = kRoundings[i % std::size(kRoundings)];
      uint16_t half = 0;
      std::memcpy(&half, unaligned + 2 * i, sizeof half);
      EXPECT_EQ(half, expected.to) << name_of(set) << " " << i;
      EXPECT_EQ(std::bit_cast<uint32_t>(back[i]), uint32_t{expected.to} << 16)
          << name_of(set) << " " << i;
      EXPECT_EQ(std::bit_cast<uint32_t>(rounded[i]), std::bit_cast<uint32_t>(back[i]))
          << name_of(set);
    }
  }
}

TEST(Bfloat16, NanStaysNan) {
  for (const InstructionSet set : instruction_sets()) {
    const Arithmetic& arithmetic = host::arithmetic(set);
    for (const uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xffc00000u, 0xffffffffu}) {
      const std::vector<float> in(17, std::bit_cast<float>(bits));
      std::vector<float> out(in.size());
      arithmetic.round_to_bfloat16(17, in.data(), out.data());
      for (const float value : out) EXPECT_TRUE(std::isnan(value)) << name_of(set);
    }
  }
}

TEST(Add, MayWriteOverEither) {
  for (const InstructionSet set : instruction_sets()) {
    const Arithmetic& arithmetic = host::arithmetic(set);
    std::vector<float> a(37, 1.5f);
    const std::vector<float> b(37, 2.0f);
    arithmetic.add(37, a.data(), b.data(), a.data());
    for (const float value : a) EXPECT_EQ(value, 3.5f) << name_of(set);
  }
}

}  // namespace
}  // namespace muster::host
