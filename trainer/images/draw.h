#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "trainer/images/box.h"
#include "trainer/images/image.h"

namespace muster::images {

using Colour = std::array<uint8_t, 3>;  // red, green, blue

// Returns a colour for the label that differs from the colours of neighbouring labels, and on which
// black letters are readable.
Colour colour_of(int32_t label);

// Draws the border of a box, and above its upper left corner (below, if there is no room) `text` on
// a background of the colour. Parts outside of the image are left out, and a box with a corner that
// is not finite is not drawn. Letters are drawn as capitals; a character that the font does not
// have is drawn as a block. `scale`: the thickness of lines, in pixels; letters are 7 times as
// high.
void draw_box(Image& image, const Box& box, std::string_view text, const Colour& colour,
              size_t scale = 1);

}  // namespace muster::images
