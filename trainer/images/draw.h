#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "trainer/images/box.h"
#include "trainer/images/image.h"

namespace muster::images {

using Colour = std::array<uint8_t, 3>;  // red, green, blue

// Returns a colour that tells the label from its neighbours, and on which black letters can be
// read.
Colour colour_of(int32_t label);

// Draws the border of a box, and above its upper left corner (below, if there is no room) `text` on
// a ground of the colour. What would be outside of the image is left out, and a box with a corner
// that is no finite number is not drawn. Letters are drawn as capitals, and a character that the
// font does not have as a block. `scale`: the thickness of lines, in pixels; letters are 7 times as
// high.
void draw_box(Image& image, const Box& box, std::string_view text, const Colour& colour,
              size_t scale = 1);

}  // namespace muster::images
