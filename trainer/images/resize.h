#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/images/image.h"

namespace muster::images {

// Bilinear resizing as tf.image.resize has it (method "bilinear", no antialiasing): the centre of
// pixel i is at i + 0.5, and beyond the centres of the outermost pixels their values go on. The
// arithmetic is in float32. The object keeps its memory from image to image; only one thread may
// use it at a time.
class Resizer {
 public:
  // Writes height x width x 3 floats, from 0 to 255, in C order. `from` must have a pixel, height
  // and width must not be 0, and `out` must be of that size.
  void resize(const ImageView& from, size_t height, size_t width, std::span<float> out);

  // Does the same with each value rounded to the nearest (a half upward).
  void resize(const ImageView& from, size_t height, size_t width, Image& out);

 private:
  // The two neighbours between which a value lies, and how far it is from the first to the second.
  struct Place {
    size_t lower;
    size_t upper;
    float weight;
  };

  static void find_places(size_t from, size_t to, std::vector<Place>& places);
  const float* widened_row(const ImageView& from, size_t y);
  template <typename Value, typename Convert>
  void resize_rows(const ImageView& from, size_t height, size_t width, Value* out,
                   const Convert& convert);

  std::vector<Place> rows_, columns_;
  struct WidenedRow {
    size_t y = SIZE_MAX;  // the row of the source; SIZE_MAX: none
    std::vector<float> values;
  };
  WidenedRow widened_[2];  // the rows last used, resized along their length
};

}  // namespace muster::images
