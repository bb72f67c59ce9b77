#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "common/error.h"
#include "trainer/checkpoint/files/safetensors.h"
#include "trainer/checkpoint/files/slices.h"

using namespace muster;

// The header of a file that holds these bytes. Where it is taken, the tensors cover the data
// exactly.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  uint64_t length = 0;
  if (size < sizeof length) return 0;
  std::memcpy(&length, bytes, sizeof length);
  if (length > size - sizeof length) length = size - sizeof length;
  const std::string_view json(reinterpret_cast<const char*>(bytes) + sizeof length, length);
  try {
    const auto header = checkpoint::SafetensorsHeader::parse(json, size, "fuzz");
    uint64_t at = sizeof length + length;
    for (const auto& tensor : header.tensors) {
      uint64_t count = 1;
      for (const int64_t axis : tensor.shape) count *= static_cast<uint64_t>(axis);
      if (tensor.begin != at || tensor.end < at) __builtin_trap();
      if (tensor.type != nullptr && tensor.count() != count) __builtin_trap();
      at = tensor.end;
    }
    if (at != size) __builtin_trap();
    checkpoint::slices_of(header, "fuzz");
  } catch (const Invalid&) {
  }
  return 0;
}
