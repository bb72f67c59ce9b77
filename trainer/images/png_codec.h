#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/images/decode.h"
#include "trainer/images/image.h"
#include "trainer/images/name.h"

namespace muster::images {

// Functions that use libpng and throw errors. encode_png() of encode.h is in the same source file.

// Decodes the pixels as they are stored. Returns EXIF's orientation, from 1 to 8, by which the
// pixels must be turned. `rows` is memory that is kept from image to image.
int decode_png(std::span<const std::byte> bytes, const Name& name, uint64_t most_pixels,
               Image& image, std::vector<unsigned char*>& rows);

ImageHeader read_png_header(std::span<const std::byte> bytes, const Name& name);

}  // namespace muster::images
