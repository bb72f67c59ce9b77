#include "trainer/compute/cpu/check/sheet.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "trainer/compute/random.h"

namespace muster::compute::cpu {
namespace {

constexpr int64_t kBehind = 32;  // numbers behind each array: a whole vector of any set

// Arrays are filled with these numbers; each array begins at another number.
std::span<const float> small_numbers() {
  static const auto numbers = [] {
    std::array<float, 1024> some{};
    for (size_t i = 0; i < some.size(); ++i)
      some.at(i) = static_cast<float>(static_cast<int>(mix64(i) % 33) - 16) / 8;
    return some;
  }();
  return numbers;
}

uint16_t upper_half(float number) {
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}

float from_half(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float number = 0;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

// Whether `found` equals `expected` up to rounding; a difference of `share` of the number is
// allowed.
bool alike(float expected, float found, float share) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) == std::isnan(found);
  return expected == found ||
         std::abs(expected - found) <= share * (1 + std::abs(expected));  // false for infinity
}

template <typename Number>
Number at(const std::vector<std::byte>& bytes, size_t i) {
  Number number;
  std::memcpy(&number, &bytes[i * sizeof number], sizeof number);
  return number;
}

}  // namespace

template <typename Number, typename Make>
Number* Sheet::add(Kind kind, int64_t n, Make make) {
  Block& block = blocks_.emplace_back();
  block.kind = kind;
  block.bytes.resize(static_cast<size_t>(n + kBehind) * sizeof(Number));
  auto* numbers = reinterpret_cast<Number*>(block.bytes.data());
  const std::span<const float> small = small_numbers();
  const size_t first = 61 * blocks_.size();
  for (size_t i = 0; i < static_cast<size_t>(n + kBehind); ++i)
    numbers[i] = make(small[(first + i) % small.size()]);
  return numbers;
}

float* Sheet::floats(int64_t n) {
  return add<float>(Kind::number, n, [](float x) { return x; });
}
float* Sheet::positive(int64_t n) {
  return add<float>(Kind::number, n, [](float x) { return std::abs(x) + 0.125f; });
}
float* Sheet::mostly_zeros(int64_t n) {
  return add<float>(Kind::number, n, [](float x) { return x > 0.75f ? x : 0.0f; });
}
float* Sheet::thirds(int64_t n) {
  return add<float>(Kind::number, n, [](float x) { return x / 3; });
}
uint16_t* Sheet::halves(int64_t n) {
  return add<uint16_t>(Kind::half, n, upper_half);
}
uint32_t* Sheet::words(int64_t n) {
  return add<uint32_t>(Kind::word, n, [](float) { return 0u; });
}
void Sheet::tell(double number) {
  floats(1)[0] = static_cast<float>(number);
}

std::string Sheet::difference(const Sheet& expected, const Sheet& found) {
  for (size_t b = 0; b < expected.blocks_.size(); ++b) {
    const auto& [kind, right] = expected.blocks_[b];
    const std::vector<std::byte>& is = found.blocks_[b].bytes;
    if (right == is) continue;
    const size_t size = kind == Kind::half ? 2 : 4;
    for (size_t i = 0; i < right.size() / size; ++i) {
      if (kind == Kind::word) {
        const auto wanted = at<uint32_t>(right, i), got = at<uint32_t>(is, i);
        if (wanted != got) return fmt::format("expected {:#x}, found {:#x}", wanted, got);
        continue;
      }
      const bool half = kind == Kind::half;
      const float wanted = half ? from_half(at<uint16_t>(right, i)) : at<float>(right, i);
      const float got = half ? from_half(at<uint16_t>(is, i)) : at<float>(is, i);
      if (!alike(wanted, got, half ? 0x1p-7f : 1e-4f))
        return fmt::format("expected {}, found {}", wanted, got);
    }
  }
  return "";
}

}  // namespace muster::compute::cpu
