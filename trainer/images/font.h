#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace muster::images {

// A font for labels in pictures: digits, capitals and the signs of file names and numbers.

constexpr int kGlyphHeight = 7;
constexpr int kGlyphWidth = 5;

// The rows from above; bit 4 is the leftmost pixel.
using Glyph = std::array<uint8_t, kGlyphHeight>;

// Returns the glyph of an ASCII character, small letters as capitals; a block for any other.
const Glyph& glyph_of(char character);

}  // namespace muster::images
