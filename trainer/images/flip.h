#pragma once

#include <vector>

#include "trainer/images/box.h"

namespace muster::images {

// Mirrors the boxes of an image left to right, like the image.
void flip(std::vector<Box>& boxes);

}  // namespace muster::images
