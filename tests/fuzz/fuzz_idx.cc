#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "common/error.h"
#include "trainer/data/idx.h"

using namespace muster;

// As images and as labels; no gzip bomb may take memory beyond its own bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  try {
    std::istringstream file(text);
    data::ByteStream stream(file, "fuzz", size);
    const data::IdxImages images = data::read_idx_images(stream, {.skip = size > 40 ? 1 : 0});
    uint64_t expected = images.count;
    for (const int64_t axis : images.shape) expected *= static_cast<uint64_t>(axis);
    if (images.pixels.bytes().size() != expected) __builtin_trap();
  } catch (const Invalid&) {
  }
  try {
    std::istringstream file(text);
    data::ByteStream stream(file, "fuzz", size);
    const data::IdxLabels labels = data::read_idx_labels(stream);
    if (labels.labels.empty() || labels.largest > 255) __builtin_trap();
  } catch (const Invalid&) {
  }
  return 0;
}
