#pragma once

#include <cstdint>
#include <string_view>

#include "trainer/images/decode.h"

namespace muster::images {

// Check a header's size before memory for its pixels is allocated. Both functions throw Invalid,
// beginning with `name`.

void check_pixels(const ImageSize& size, uint64_t most_pixels, std::string_view name);

// `least`: the smallest number of bytes that can code an image of this size.
void check_data(const ImageSize& size, uint64_t least, uint64_t found, std::string_view name);

}  // namespace muster::images
