#pragma once

#include <cstdint>

#include "trainer/data/images/image_set.h"
#include "trainer/images/name.h"

namespace muster::data {

// Turns an image's boxes like the picture (by EXIF), if the boxes were drawn on the stored picture
// before its turn. This is so if `height` and `width`, the size that the boxes were made for, fit
// only the stored picture. Sizes that fit neither picture become the image's oddity; a size of 0 or
// less means unknown. Reads the picture's header. Throws Invalid, beginning with `name`, if the
// header is damaged.
void fit_boxes(int64_t height, int64_t width, const images::Name& name, EncodedImage& image);

}  // namespace muster::data
