#pragma once

#include <cstdint>

#include "trainer/compute/random.h"

namespace muster::data {

// The users of a seed. Each user draws from a separate sequence, so that no numbers are shared if
// data and training have the same seed.
enum class Stream : uint64_t {
  epoch_order = 0,  // this and the values after it, one for each epoch: far fewer than 2^63
  synthetic_input = uint64_t{1} << 63,
  synthetic_noise,
  synthetic_label,
  synthetic_centre,
  synthetic_spread,
  synthetic_presence,
  shard_seed,
  augmentation,  // this and the values after it, one for each epoch
};

// SplitMix64's sequence for a key, by position, so that number i does not depend on the numbers
// before it. `bits` and `below` return the same value on every platform; `normal` uses the C
// library.
class CounterRandom {
 public:
  // `part` selects a part of a stream that has several.
  CounterRandom(uint64_t seed, Stream stream, uint64_t part = 0)
      : CounterRandom(seed, static_cast<uint64_t>(stream) + part) {}

  uint64_t bits(uint64_t counter) const {
    return compute::mix64(key_ + (counter - 1) * compute::kGolden64);
  }

  // Returns a number in [0, bound), bound > 0; the bias is below bound / 2^64.
  uint64_t below(uint64_t counter, uint64_t bound) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(bits(counter)) * bound) >> 64);
  }

  // Returns a number in (0, 1].
  double uniform(uint64_t counter) const { return compute::unit_uniform(bits(counter)) + 0x1p-53; }

  // Returns a normal number of mean 0 and deviation 1.
  double normal(uint64_t counter) const {
    const uint64_t b = bits(counter);
    const double u = (static_cast<double>(b >> 32) + 1.0) * 0x1p-32;
    return compute::normal_of(u, static_cast<double>(b & 0xffffffffu) * 0x1p-32);
  }

 private:
  CounterRandom(uint64_t seed, uint64_t stream)
      : key_(compute::mix64(seed) ^ compute::mix64((stream - 1) * compute::kGolden64 + 1)) {}

  uint64_t key_;
};

}  // namespace muster::data
