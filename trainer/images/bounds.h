#pragma once

#include <cstdint>
#include <string_view>

#include "trainer/images/decode.h"

namespace muster::images {

// The checks of a header before memory is taken for the pixels that it promises. Both throw
// Invalid, which begins with `name`.

void check_pixels(const ImageSize& size, uint64_t most_pixels, std::string_view name);

// `least`: the number of bytes without which no image of this size can be coded.
void check_data(const ImageSize& size, uint64_t least, uint64_t found, std::string_view name);

}  // namespace muster::images
