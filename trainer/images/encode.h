#pragma once

#include <string>

#include "trainer/images/image.h"

namespace muster::images {

// Return the bytes of a file. An image must have at least one pixel, for a JPEG at most 65,500 in
// each direction. Throw Invalid for any other image.

// `level`: zlib's, from 1 (fast) to 9 (small).
std::string encode_png(const ImageView& image, int level = 6);

enum class Chroma { full, halved };  // halved: half of the resolution in both directions (4:2:0)

// `quality`: from 1 to 100.
std::string encode_jpeg(const ImageView& image, int quality, Chroma chroma = Chroma::halved);

}  // namespace muster::images
