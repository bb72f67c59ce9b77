#pragma once

#include <cstdint>

#include "trainer/images/decode.h"
#include "trainer/images/name.h"

namespace muster::images {

// Check a header's size before memory for its pixels is allocated. Both functions throw Invalid,
// beginning with `name`.

void check_pixels(const ImageSize& size, uint64_t most_pixels, const Name& name);

// `least`: the smallest number of bytes that can code an image of this size.
void check_data(const ImageSize& size, uint64_t least, uint64_t found, const Name& name);

}  // namespace muster::images
