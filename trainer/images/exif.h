#pragma once

#include <cstddef>
#include <span>

namespace muster::images {

// Returns the orientation (1 to 8) in a block of EXIF data that begins with its TIFF header; 1 if
// there is none or the block is damaged.
int exif_orientation(std::span<const std::byte> tiff);

// Whether an image of this orientation is seen with height and width exchanged.
constexpr bool turns_sideways(int orientation) {
  return orientation >= 5;
}

// Whether an image of this orientation is seen with its rows, or columns, in reverse order, before
// height and width are exchanged.
constexpr bool reverses_rows(int orientation) {
  return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}
constexpr bool reverses_columns(int orientation) {
  return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

}  // namespace muster::images
