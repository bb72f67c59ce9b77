#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/images/decode.h"
#include "trainer/images/image.h"

namespace muster::images {

// libpng behind functions that throw. encode_png() of encode.h is beside them.

// `rows` is memory that is kept from image to image.
void decode_png(std::span<const std::byte> bytes, std::string_view name, uint64_t most_pixels,
                Image& image, std::vector<unsigned char*>& rows);

ImageSize read_png_size(std::span<const std::byte> bytes, std::string_view name);

}  // namespace muster::images
