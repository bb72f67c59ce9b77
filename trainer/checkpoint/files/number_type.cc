#include "trainer/checkpoint/files/number_type.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace muster::checkpoint {

namespace {

float value_of(float value) {
  return value;
}

float value_of(double value) {
  return static_cast<float>(value);
}

struct BFloat16 {
  uint16_t bits;
};

float value_of(BFloat16 number) {
  return std::bit_cast<float>(static_cast<uint32_t>(number.bits) << 16);
}

struct Float16 {
  uint16_t bits;
};

float value_of(Float16 number) {
  constexpr int kFractionBits = 10, kLargestExponent = 31, kBias = 15;
  const int fraction = number.bits & 0x3ff, exponent = number.bits >> kFractionBits & 0x1f;
  float size = std::ldexp(static_cast<float>(exponent > 0 ? fraction + 0x400 : fraction),
                          std::max(exponent, 1) - kBias - kFractionBits);
  if (exponent == kLargestExponent)
    size = fraction == 0 ? std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  return (number.bits & 0x8000) != 0 ? -size : size;
}

template <class Number>
void read_as(std::span<const std::byte> from, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Number number;
    std::memcpy(&number, from.data() + i * sizeof number, sizeof number);
    values[i] = value_of(number);
  }
}

constexpr NumberType kTypes[] = {{"F32", 1, sizeof(float), read_as<float>},
                                 {"F16", 19, sizeof(Float16), read_as<Float16>},
                                 {"BF16", 14, sizeof(BFloat16), read_as<BFloat16>},
                                 {"F64", 2, sizeof(double), read_as<double>}};

const NumberType* find(const auto& value, auto member) {
  const auto* found = std::ranges::find(kTypes, value, member);
  return found == std::end(kTypes) ? nullptr : found;
}

}  // namespace

const NumberType* find_number_type(std::string_view name) {
  return find(name, &NumberType::name);
}

const NumberType* find_number_type(int tensorflow) {
  return find(tensorflow, &NumberType::tensorflow);
}

}  // namespace muster::checkpoint
