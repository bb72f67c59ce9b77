#include "trainer/images/draw.h"

#include <cmath>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "trainer/images/font.h"

namespace muster::images {
namespace {

using testing::ElementsAre;

constexpr Colour kRed{255, 0, 0};

Image white(size_t height, size_t width) {
  Image image;
  image.resize(height, width);
  std::ranges::fill(image.pixels, uint8_t{255});
  return image;
}

// A letter a pixel: '.' white, '#' black, 'r' red.
std::vector<std::string> lines_of(const Image& image) {
  std::vector<std::string> lines;
  for (size_t y = 0; y < image.height; ++y) {
    std::string& line = lines.emplace_back();
    for (size_t x = 0; x < image.width; ++x) {
      const uint8_t* pixel = image.row(y) + 3 * x;
      line.push_back(pixel[1] == 255 ? '.' : pixel[0] == 0 ? '#' : 'r');
    }
  }
  return lines;
}

TEST(DrawBox, DrawsTheBorder) {
  Image image = white(6, 8);
  draw_box(image, {.ymin = 1 / 6.0f, .xmin = 0.25f, .ymax = 5 / 6.0f, .xmax = 0.75f}, "", kRed);
  EXPECT_THAT(lines_of(image), ElementsAre("........",  //
                                           "..rrrr..",  //
                                           "..r..r..",  //
                                           "..r..r..",  //
                                           "..rrrr..",  //
                                           "........"));
}

TEST(DrawBox, WritesTheTextAboveTheBox) {
  Image image = white(14, 14);
  draw_box(image, {.ymin = 10 / 14.0f, .xmin = 0, .ymax = 1, .xmax = 1}, "t1", kRed);
  EXPECT_THAT(lines_of(image), ElementsAre("..............",  //
                                           "rrrrrrrrrrrrr.",  //
                                           "r#####rrr#rrr.",  //
                                           "rrr#rrrr##rrr.",  //
                                           "rrr#rrrrr#rrr.",  //
                                           "rrr#rrrrr#rrr.",  //
                                           "rrr#rrrrr#rrr.",  //
                                           "rrr#rrrrr#rrr.",  //
                                           "rrr#rrrr###rr.",  //
                                           "rrrrrrrrrrrrr.",  //
                                           "rrrrrrrrrrrrrr",  //
                                           "r............r",  //
                                           "r............r",  //
                                           "rrrrrrrrrrrrrr"));
}

TEST(DrawBox, StaysWithinTheImage) {
  const std::string text(1000, 'x');
  for (const size_t scale : {0u, 1u, 3u, 100000u}) {
    Image image = white(9, 5);
    for (const Box& box : std::initializer_list<Box>{
             {-5, -5, 5, 5}, {0.5f, 0.5f, 0.2f, 0.2f}, {0.9f, 0.9f, 2, 2}, {-1e30f, 0, 1e30f, 1}}) {
      draw_box(image, box, text, kRed, scale);
    }
    EXPECT_EQ(image.pixels.size(), 9u * 5 * 3);
  }
}

TEST(DrawBox, LeavesOutABoxThatIsNoNumber) {
  Image image = white(4, 4);
  draw_box(image, {.ymin = NAN, .xmin = 0, .ymax = 1, .xmax = 1}, "x", kRed);
  draw_box(image, {.ymin = 0, .xmin = 0, .ymax = HUGE_VALF, .xmax = 1}, "x", kRed);
  EXPECT_EQ(image.pixels, white(4, 4).pixels);
}

TEST(Font, HasADifferentGlyphForEachDigitAndLetter) {
  std::set<Glyph> glyphs;
  const std::string characters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ .-_%/:";
  for (const char c : characters) glyphs.insert(glyph_of(c));
  EXPECT_EQ(glyphs.size(), characters.size());
  EXPECT_EQ(glyph_of('q'), glyph_of('Q'));
  EXPECT_EQ(glyph_of('\xc3'), glyph_of('~'));  // a block
}

TEST(ColourOf, TellsLabelsApart) {
  std::set<Colour> colours;
  for (int32_t label = 0; label < 90; ++label) colours.insert(colour_of(label));
  EXPECT_GT(colours.size(), 80u);
  colour_of(INT32_MIN);
}

}  // namespace
}  // namespace muster::images
