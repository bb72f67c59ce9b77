#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/images/image.h"

namespace muster::images {

// Bilinear resizing like tf.image.resize (method "bilinear", no antialiasing): the centre of pixel
// i is at i + 0.5, and beyond the centres of the outermost pixels their values continue. The
// arithmetic is in float32; at the end each value is rounded to the nearest (a half upward). The
// object keeps its memory from image to image; only one thread may use it at a time.
class Resizer {
 public:
  // `from` must have a pixel, and height and width must not be 0.
  void resize(const ImageView& from, size_t height, size_t width, Image& to);

 private:
  // The two neighbours of a value, and the weight of the second one.
  struct Place {
    size_t lower;
    size_t upper;
    float weight;
  };

  static void find_places(size_t from, size_t to, std::vector<Place>& places);
  const float* widened_row(const ImageView& from, size_t y);

  std::vector<Place> rows_, columns_;
  struct WidenedRow {
    size_t y = SIZE_MAX;  // the row of the source; SIZE_MAX: none
    std::vector<float> values;
  };
  WidenedRow widened_[2];  // the rows last used, resized along their length
};

}  // namespace muster::images
