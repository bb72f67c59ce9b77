#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace muster::compute {

// Counter-based randomness: a value is a function of a key and a counter, so the order of the
// computation and the partition over replicas or threads cannot change the value.

// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
constexpr uint64_t kGolden64 = 0x9E3779B97F4A7C15u;
constexpr uint64_t mix64(uint64_t x) {
  x += kGolden64;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

constexpr uint64_t combine64(uint64_t key, uint64_t value) {
  return mix64(key ^ mix64(value));
}

// FNV-1a.
constexpr uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

// Returns a number in [0, 1) with 53 random bits.
constexpr double unit_uniform(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// Returns a normal number of mean 0 and deviation 1 (Box and Muller). u is in (0, 1], v in [0, 1).
// Uses the C library's logarithm and cosine.
inline double normal_of(double u, double v) {
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace muster::compute
