#include "trainer/images/exif.h"

#include "trainer/images/bytes.h"

namespace muster::images {

int exif_orientation(Bytes tiff) {
  const bool little = begins_with(tiff, "II"), big = begins_with(tiff, "MM");
  if ((!little && !big) || tiff.size() < 8) return 1;
  const auto read = [&](uint64_t index, size_t count) -> uint64_t {  // 0 after the end
    if (index > tiff.size() || count > tiff.size() - index) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value = value << 8 | std::to_integer<uint64_t>(tiff[index + (little ? count - 1 - i : i)]);
    }
    return value;
  };
  constexpr uint64_t kOrientation = 0x0112, kShort = 3, kEntryBytes = 12;
  if (read(2, 2) != 42) return 1;
  const uint64_t directory = read(4, 4), entries = read(directory, 2);
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + i * kEntryBytes;
    if (read(entry, 2) != kOrientation) continue;
    const uint64_t value = read(entry + 8, 2);
    return read(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace muster::images
