#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/system/file.h"
#include "trainer/images/random_numbers.h"

namespace muster::images {

// The bytes of tests/fixtures/images/NAME, which tests/python/make_image_fixtures.py makes.
inline std::string fixture(const std::string& name) {
  return read_file(std::filesystem::path(MUSTER_SOURCE_DIR) / "tests/fixtures/images" / name);
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Numbers that a test has chosen; the last is repeated. `below` takes the share of its bound.
class Scripted : public RandomNumbers {
 public:
  explicit Scripted(std::vector<double> numbers) : numbers_(std::move(numbers)) {}
  double uniform() override { return numbers_[taken_ < numbers_.size() ? taken_++ : taken_ - 1]; }
  uint64_t below(uint64_t bound) override {
    return static_cast<uint64_t>(uniform() * static_cast<double>(bound));
  }
  size_t taken() const { return taken_; }

 private:
  std::vector<double> numbers_;
  size_t taken_ = 0;
};

}  // namespace muster::images
