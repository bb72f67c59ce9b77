#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/error.h"
#include "trainer/images/decode.h"

using namespace muster;

// A JPEG or PNG, at its full size, scaled, and a window of it. An image that is taken has the size
// that its header says.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static images::Decoder decoder;
  static images::Image image, part;
  const std::span file(reinterpret_cast<const std::byte*>(bytes), size);
  images::DecodeOptions options{.most_pixels = 1 << 18};
  try {
    decoder.decode(file, "fuzz", options, image);
    const images::ImageSize said = images::read_size(file, "fuzz");
    if (image.height != said.height || image.width != said.width) __builtin_trap();
    if (image.pixels.size() != image.height * image.width * 3) __builtin_trap();
    options.needed_height = (image.height + 1) / 2;
    options.needed_width = (image.width + 1) / 2;
    decoder.decode(file, "fuzz", options, image);
    if (image.height < options.needed_height || image.width < options.needed_width) {
      __builtin_trap();
    }
    options.window = {said.height / 3, said.width / 3, (said.height + 1) / 2, (said.width + 1) / 2};
    const images::ImageView view = decoder.decode(file, "fuzz", options, part);
    const images::ImageView same =
        image.view(options.window.top * image.height / said.height,
                   options.window.left * image.width / said.width, view.height, view.width);
    for (size_t y = 0; y < view.height; ++y) {
      if (!std::equal(view.row(y), view.row(y) + 3 * view.width, same.row(y))) __builtin_trap();
    }
  } catch (const Invalid&) {
  }
  return 0;
}
