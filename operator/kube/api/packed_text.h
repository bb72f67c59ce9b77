#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::kube {

// A text that takes less memory than a string: it is compressed (zlib), and unpacked by each call
// of text(). JSON of some kilobytes takes a quarter of its size, and 20 us to unpack.
class PackedText {
 public:
  PackedText() = default;
  explicit PackedText(std::string_view text);

  std::string text() const;

 private:
  size_t size_ = 0;     // bytes of the text
  std::string packed_;  // the text itself where compression would not make it shorter
};

}  // namespace muster::kube
