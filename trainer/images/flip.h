#pragma once

#include <vector>

#include "trainer/images/box.h"
#include "trainer/images/image.h"

namespace muster::images {

// Mirror left to right.
void flip(Image& image);
void flip(std::vector<Box>& boxes);

}  // namespace muster::images
