#pragma once

#include <cstdint>
#include <string_view>

#include "trainer/data/images/image_set.h"

namespace muster::data {

// Makes an image's boxes fit the picture as it is seen, if they were drawn on it as it is stored,
// before EXIF's turn: that is so where only the stored picture has the height and width, in pixels,
// that the boxes were made for. Sizes that fit neither are the image's oddity; 0 or less is no
// size. Reads the picture's header. Throws Invalid, which begins with `name`, if that is damaged.
void fit_boxes(int64_t height, int64_t width, std::string_view name, EncodedImage& image);

}  // namespace muster::data
