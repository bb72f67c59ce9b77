#include "trainer/data/images/fit_boxes.h"

#include <fmt/format.h>

#include <span>

#include "trainer/images/decode.h"

namespace muster::data {

void fit_boxes(int64_t height, int64_t width, const images::Name& name, EncodedImage& image) {
  if (image.boxes.empty() || height <= 0 || width <= 0) return;
  const images::ImageHeader header =
      images::read_header(std::as_bytes(std::span(image.bytes)), name);
  const images::ImageSize labelled = {static_cast<uint64_t>(height), static_cast<uint64_t>(width)};
  if (labelled == header.seen()) return;
  if (labelled == header.stored) {
    for (images::Box& box : image.boxes) images::turn(box, header.orientation);
    return;
  }
  image.oddity = fmt::format(
      "{}: expected a picture of {}x{} pixels (height x width), for which its boxes were made, "
      "found one of {}x{}; they are taken for parts of this one",
      name, height, width, header.seen().height, header.seen().width);
}

}  // namespace muster::data
