#include "trainer/images/draw.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "trainer/images/font.h"

namespace muster::images {
namespace {

using Pixels = std::ptrdiff_t;

// Fills rows [top, bottom) and columns [left, right), as far as they are in the image.
void fill(Image& image, Pixels top, Pixels left, Pixels bottom, Pixels right,
          const Colour& colour) {
  top = std::max<Pixels>(top, 0);
  left = std::max<Pixels>(left, 0);
  bottom = std::min(bottom, static_cast<Pixels>(image.height));
  right = std::min(right, static_cast<Pixels>(image.width));
  for (Pixels y = top; y < bottom; ++y) {
    uint8_t* pixel = image.row(static_cast<size_t>(y)) + 3 * left;
    for (Pixels x = left; x < right; ++x, pixel += 3) std::ranges::copy(colour, pixel);
  }
}

void draw_text(Image& image, Pixels top, Pixels left, std::string_view text, Pixels scale) {
  constexpr Colour kBlack{0, 0, 0};
  for (const char character : text) {
    const Glyph& glyph = glyph_of(character);
    for (Pixels row = 0; row < kGlyphHeight; ++row) {
      for (Pixels column = 0; column < kGlyphWidth; ++column) {
        if ((glyph[static_cast<size_t>(row)] >> (kGlyphWidth - 1 - column) & 1) == 0) continue;
        const Pixels y = top + row * scale, x = left + column * scale;
        fill(image, y, x, y + scale, x + scale, kBlack);
      }
    }
    left += (kGlyphWidth + 1) * scale;
  }
}

}  // namespace

Colour colour_of(int32_t label) {
  // Multiples of the golden ratio are far apart on the circle of hues.
  const double turn = static_cast<double>(label) * 0.6180339887498949;
  const double hue = 6 * (turn - std::floor(turn));
  const auto channel = [&](double own) {
    const double distance = std::min(std::fabs(hue - own), 6 - std::fabs(hue - own));
    return static_cast<uint8_t>(255 - 175 * std::clamp(distance - 1, 0.0, 1.0));
  };
  return {channel(0), channel(2), channel(4)};
}

void draw_box(Image& image, const Box& box, std::string_view text, const Colour& colour,
              size_t scale) {
  for (const float corner : {box.ymin, box.xmin, box.ymax, box.xmax}) {
    if (!std::isfinite(corner)) return;
  }
  const auto line = static_cast<Pixels>(std::clamp<size_t>(scale, 1, 64));
  const auto pixel = [](float corner, size_t length) {
    return static_cast<Pixels>(
        std::lround(std::clamp(corner, -1.0f, 2.0f) * static_cast<float>(length)));
  };
  const Pixels top = pixel(box.ymin, image.height), bottom = pixel(box.ymax, image.height);
  const Pixels left = pixel(box.xmin, image.width), right = pixel(box.xmax, image.width);
  fill(image, top, left, top + line, right, colour);
  fill(image, bottom - line, left, bottom, right, colour);
  fill(image, top, left, bottom, left + line, colour);
  fill(image, top, right - line, bottom, right, colour);
  if (text.empty()) return;
  text = text.substr(0, image.width / (kGlyphWidth + 1) + 1);
  const Pixels height = (kGlyphHeight + 2) * line;
  const Pixels width = (static_cast<Pixels>(text.size()) * (kGlyphWidth + 1) + 1) * line;
  const Pixels room = std::max<Pixels>(static_cast<Pixels>(image.width) - width, 0);
  const Pixels at = std::clamp<Pixels>(left, 0, room);
  const Pixels ground = top >= height ? top - height : std::max<Pixels>(top, 0);
  fill(image, ground, at, ground + height, at + width, colour);
  draw_text(image, ground + line, at + line, text, line);
}

}  // namespace muster::images
