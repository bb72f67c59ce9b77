#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::kube {

// A text that takes less memory than a string: it is compressed with zlib, and each call of text()
// unpacks it. The JSON of a TrainingJob takes a tenth of its size, other JSON about a quarter.
class PackedText {
 public:
  PackedText() = default;
  explicit PackedText(std::string_view text);

  std::string text() const;
  size_t size() const { return packed_.size(); }  // bytes in memory

 private:
  size_t size_ = 0;  // bytes of the unpacked text
  std::string packed_;
};

}  // namespace muster::kube
