#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "common/error.h"
#include "trainer/data/files/idx.h"
#include "trainer/data/files/storage.h"

using namespace muster;

// As images and as labels; no gzip bomb may take memory beyond its own bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  try {
    std::istringstream file(text);
    data::ByteStream stream(file, "fuzz", size);
    const data::IdxShape shape = data::read_idx_shape(stream);
    uint64_t elements = shape.samples;
    for (const int64_t axis : shape.sample) elements *= static_cast<uint64_t>(axis);
    const uint64_t first = size > 40 && shape.samples > 1 ? 1 : 0;
    data::Storage pixels(elements / shape.samples * (shape.samples - first));
    std::istringstream again(text);
    data::ByteStream whole(again, "fuzz", size);
    data::read_idx_images(whole, shape, first, pixels.bytes());
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
