#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::kube {

// A text that takes less memory than a string: it is compressed (zlib), and unpacked by each call
// of text(). The JSON of a TrainingJob takes a tenth of its size, other JSON about a quarter.
class PackedText {
 public:
  PackedText() = default;
  explicit PackedText(std::string_view text);

  std::string text() const;
  size_t size() const { return packed_.size(); }  // bytes that are kept

 private:
  size_t size_ = 0;  // bytes of the text
  std::string packed_;
};

}  // namespace muster::kube
