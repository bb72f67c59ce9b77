#pragma once

#include <vector>

#include "trainer/images/box.h"

namespace muster::images {

// Moves the boxes of an image to where they are after it was mirrored left to right.
void flip(std::vector<Box>& boxes);

}  // namespace muster::images
