// The kernels of normalized tiles that round to bfloat16 on the way, against the same in two steps:
// they must have the same bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/cpu/check/checked_kernels.h"
#include "trainer/host/arithmetic.h"
#include "trainer/host/instruction_set.h"

namespace muster::compute::testing {
namespace {

using cpu::Kernels;

// Some places and channels of fixture values: a raw output and a gradient as bfloat16, and what
// batch normalization knows of the channels.
struct TileFixture {
  TileFixture(const Kernels& kernels, int64_t places, int64_t channels)
      : places(places),
        channels(channels),
        floats(numbers(0, count())),
        z(halves(kernels, numbers(1, count()))),
        dy(halves(kernels, numbers(2, count()))) {
    for (uint64_t i = 0; i < 5; ++i) parameters.push_back(numbers(3 + i, channels));
  }

  int64_t count() const { return places * channels; }

  static std::vector<float> numbers(uint64_t number, int64_t count) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(fixture_value(number, static_cast<uint64_t>(i), 3.0f));
    return values;
  }

  static std::vector<uint16_t> halves(const Kernels& kernels, const std::vector<float>& from) {
    std::vector<uint16_t> to(from.size());
    kernels.to_bfloat16(static_cast<int64_t>(from.size()), from.data(), to.data());
    return to;
  }

  cpu::NormalizedTile tile() {
    cpu::NormalizedTile tile;
    tile.places = places;
    tile.channels = channels;
    tile.half = true;
    tile.z = z.data();
    tile.dy = dy.data();
    tile.scale = parameters[0].data();
    tile.shift = parameters[1].data();
    tile.mean = parameters[2].data();
    tile.slope = parameters[3].data();
    tile.offset = parameters[4].data();
    tile.low = 0;
    tile.high = 6;
    return tile;
  }

  int64_t places, channels;
  std::vector<float> floats;
  std::vector<uint16_t> z, dy;
  std::vector<std::vector<float>> parameters;
};

struct Extent {
  int64_t places, channels;
};
const std::vector<Extent> kExtents = {{1, 1},  {2, 3},  {3, 16},  {5, 17},
                                      {8, 64}, {7, 65}, {16, 96}, {9, 200}};

// Calls check(kernels, fixture) for all extents with the kernels of each instruction set.
template <class Check>
void for_all_tiles(const Check& check) {
  for (const host::InstructionSet set : host::instruction_sets()) {
    const Kernels& kernels = cpu::kernels(set);
    for (const Extent& extent : kExtents) {
      SCOPED_TRACE(std::string(host::name_of(set)) + " " + std::to_string(extent.places) + " x " +
                   std::to_string(extent.channels));
      TileFixture fixture(kernels, extent.places, extent.channels);
      check(kernels, fixture);
    }
  }
}

// The host's function, which has a test of its own, says what is expected.
TEST(NormalizedTile, FloatsBecomeBfloat16AsTheHostRoundsThem) {
  std::vector<float> in;
  for (const uint32_t bits :
       {0x3f800000u, 0x3f808000u, 0x3f818000u, 0x3f808001u, 0x3f807fffu, 0xbf818001u, 0x00000000u,
        0x80000000u, 0x7f800000u, 0xff800000u, 0x7f7fffffu, 0x7f800001u, 0xffc00000u, 0x00800000u})
    in.push_back(std::bit_cast<float>(bits));
  for (int i = 0; i < 20; ++i) in.push_back(fixture_value(9, static_cast<uint64_t>(i), 3.0f));
  for (const host::InstructionSet set : host::instruction_sets()) {
    for (size_t n = 0; n <= in.size(); ++n) {
      constexpr uint16_t kUntouched = 0x1234;
      std::vector<uint16_t> expected(in.size() + 1, kUntouched), found = expected;
      const auto count = static_cast<int64_t>(n);
      host::arithmetic(host::InstructionSet::generic)
          .to_bfloat16(count, in.data(), expected.data());
      cpu::kernels(set).to_bfloat16(count, in.data(), found.data());
      EXPECT_EQ(found, expected) << host::name_of(set) << " " << n;
    }
  }
}

TEST(NormalizedTile, StatisticsOfFloatsThatBecomeBfloat16) {
  for_all_tiles([](const Kernels& kernels, TileFixture& f) {
    const auto statistics = [&](std::vector<uint16_t>& z, const float* unrounded) {
      std::vector<float> sums(static_cast<size_t>(2 * f.channels), 0.5f);
      kernels.normalized_statistics({f.places, f.channels, true, z.data(), unrounded, 3.0f,
                                     sums.data(), sums.data() + f.channels});
      return sums;
    };
    std::vector<uint16_t> expected = TileFixture::halves(kernels, f.floats);
    std::vector<uint16_t> z(f.z.size(), 0xffff);
    const std::vector<float> sums = statistics(z, f.floats.data());
    EXPECT_EQ(z, expected);
    EXPECT_EQ(sums, statistics(expected, nullptr));
  });
}

TEST(NormalizedTile, SumsOfAGradientThatBecomesBfloat16) {
  for_all_tiles([](const Kernels& kernels, TileFixture& f) {
    const auto sums_of = [&](std::vector<uint16_t>& dy, const float* unrounded) {
      std::vector<float> sums(static_cast<size_t>(2 * f.channels), 0.5f);
      cpu::NormalizedTile tile = f.tile();
      tile.dy = dy.data();
      tile.unrounded = unrounded;
      tile.sums = sums.data();
      kernels.normalized_sums(tile);
      return sums;
    };
    std::vector<uint16_t> expected = TileFixture::halves(kernels, f.floats);
    std::vector<uint16_t> dy(f.dy.size(), 0xffff);
    const std::vector<float> sums = sums_of(dy, f.floats.data());
    EXPECT_EQ(dy, expected);
    EXPECT_EQ(sums, sums_of(expected, nullptr));
  });
}

constexpr size_t kGuard = 64;  // NaN behind what is written

// Whether `found` has the bits of `expected`, and NaN after them.
bool begins_with(const std::vector<float>& found, const std::vector<float>& expected) {
  return std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)) == 0 &&
         std::all_of(found.begin() + static_cast<std::ptrdiff_t>(expected.size()), found.end(),
                     [](float x) { return std::isnan(x); });
}

// Checks that write(tile), which writes rows and row_pairs, writes what the two functions that pack
// floats make of `floats`; and what it writes if only one of the two is wanted.
template <class Write>
void check_pairs(const Kernels& kernels, TileFixture& f, const std::vector<float>& floats,
                 const Write& write) {
  const int64_t half = (f.channels + 1) / 2;
  std::vector<float> rows(static_cast<size_t>(f.places * half));
  std::vector<float> row_pairs(static_cast<size_t>((f.places + 1) / 2 * f.channels));
  kernels.pack_rows(f.places, f.channels, floats.data(), f.channels, rows.data(), half);
  kernels.pack_row_pairs(f.places, f.channels, floats.data(), f.channels, row_pairs.data(),
                         f.channels);
  for (const bool with_rows : {false, true}) {
    for (const bool with_pairs : {false, true}) {
      std::vector<float> found_rows(rows.size() + kGuard, NAN);
      std::vector<float> found_pairs(row_pairs.size() + kGuard, NAN);
      cpu::NormalizedTile tile = f.tile();
      if (with_rows) tile.rows = found_rows.data();
      if (with_pairs) tile.row_pairs = found_pairs.data();
      write(tile);
      EXPECT_TRUE(!with_rows || begins_with(found_rows, rows));
      EXPECT_TRUE(!with_pairs || begins_with(found_pairs, row_pairs));
    }
  }
}

class NormalizedPairs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cpu::kernels().gemm_pairs == nullptr) GTEST_SKIP() << "needs a CPU with AVX-512 BF16";
  }
};

// Compares what `pairs` writes with the floats that `kernel` writes to the field `to`.
void check_all_pairs(void (*Kernels::*kernel)(const cpu::NormalizedTile&),
                     float* cpu::NormalizedTile::*to,
                     void (*Kernels::*pairs)(const cpu::NormalizedTile&)) {
  for_all_tiles([&](const Kernels& kernels, TileFixture& f) {
    if (kernels.gemm_pairs == nullptr) return;
    std::vector<float> floats(static_cast<size_t>(f.count()));
    cpu::NormalizedTile tile = f.tile();
    tile.*to = floats.data();
    (kernels.*kernel)(tile);
    check_pairs(kernels, f, floats, kernels.*pairs);
  });
}

TEST_F(NormalizedPairs, OfValues) {
  check_all_pairs(&Kernels::normalized_values, &cpu::NormalizedTile::y,
                  &Kernels::normalized_value_pairs);
}

TEST_F(NormalizedPairs, OfGradients) {
  check_all_pairs(&Kernels::normalized_gradient, &cpu::NormalizedTile::dz,
                  &Kernels::normalized_gradient_pairs);
}

}  // namespace
}  // namespace muster::compute::testing
