#include "operator/kube/api/packed_text.h"

#include <zlib.h>

#include <stdexcept>

namespace muster::kube {

namespace {

Bytef* bytes(std::string& text) {
  return reinterpret_cast<Bytef*>(text.data());
}
const Bytef* bytes(std::string_view text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

}  // namespace

PackedText::PackedText(std::string_view text) : size_(text.size()), packed_(text) {
  uLongf size = compressBound(text.size());
  std::string packed(size, '\0');
  const int result =
      compress2(bytes(packed), &size, bytes(text), text.size(), Z_DEFAULT_COMPRESSION);
  if (result == Z_OK && size < text.size()) packed_ = packed.substr(0, size);
}

std::string PackedText::text() const {
  if (packed_.size() == size_) return packed_;
  std::string text(size_, '\0');
  uLongf size = size_;
  if (uncompress(bytes(text), &size, bytes(std::string_view(packed_)), packed_.size()) != Z_OK)
    throw std::logic_error("a packed text cannot be unpacked");
  return text;
}

}  // namespace muster::kube
