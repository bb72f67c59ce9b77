#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/error.h"
#include "trainer/records/coco.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    const auto coco = records::CocoAnnotations::parse(
        std::string_view(reinterpret_cast<const char*>(bytes), size), "fuzz");
    for (const records::CocoImage& image : coco.images) {
      for (const images::Box& box : image.boxes) {
        if (!coco.categories.index_of(box.label)) __builtin_trap();
        if (image.height > 0 && !(box.height() > 0 && box.width() > 0)) __builtin_trap();
      }
    }
  } catch (const Invalid&) {
  }
  return 0;
}
