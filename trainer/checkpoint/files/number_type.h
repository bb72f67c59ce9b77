#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace muster::checkpoint {

// A type of numbers in files of weights that can be read as float32.
struct NumberType {
  std::string_view name;  // name in safetensors: "BF16"
  int tensorflow = 0;     // number in tensorflow.DataType
  size_t bytes = 0;       // bytes of a number
  // Reads `values.size()` numbers, little-endian. A float64 becomes the nearest float32, or an
  // infinity if it is too large; the other types lose nothing.
  void (*read)(std::span<const std::byte> from, std::span<float> values);
};

inline constexpr std::string_view kNumberTypes = "F32, F16, BF16 or F64";

// Returns the type of this name in safetensors; null for any other than kNumberTypes.
const NumberType* find_number_type(std::string_view name);
// Returns the type with this number in tensorflow.DataType; null for any other.
const NumberType* find_number_type(int tensorflow);

}  // namespace muster::checkpoint
