#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace muster::data {

// Random numbers as functions of a key and a counter, so that sample i needs no sample before it.
// The mixer is SplitMix64's finalizer (Steele, Lea, Flood: "Fast splittable pseudorandom number
// generators", OOPSLA 2014). `bits` and `below` give the same value on every platform; `normal`
// uses the C library's logarithm and cosine.
class CounterRandom {
 public:
  explicit CounterRandom(uint64_t seed, uint64_t stream = 0)
      : key_(mix(seed + kGolden) ^ mix(stream * kGolden + 1)) {}

  uint64_t bits(uint64_t counter) const { return mix(key_ + counter * kGolden); }

  // In [0, bound), bound > 0; the bias is below bound / 2^64.
  uint64_t below(uint64_t counter, uint64_t bound) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(bits(counter)) * bound) >> 64);
  }

  // In (0, 1].
  double uniform(uint64_t counter) const {
    return (static_cast<double>(bits(counter) >> 11) + 1.0) * 0x1p-53;
  }

  // Of mean 0 and deviation 1, by Box and Muller.
  double normal(uint64_t counter) const {
    const uint64_t b = bits(counter);
    const double u = (static_cast<double>(b >> 32) + 1.0) * 0x1p-32;
    const double angle = static_cast<double>(b & 0xffffffffu) * 0x1p-32;
    return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * angle);
  }

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  static constexpr uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t key_;
};

}  // namespace muster::data
