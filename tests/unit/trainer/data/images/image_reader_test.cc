#include "trainer/data/images/image_reader.h"

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/trainer/data/images/pictures.h"

namespace muster::data {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::vector<std::byte> resized(const images::ImageView& view, size_t height, size_t width) {
  images::Image image;
  images::Resizer().resize(view, height, width, image);
  const auto bytes = std::as_bytes(std::span(image.pixels));
  return {bytes.begin(), bytes.end()};
}

TEST(ImageReader, ResizesWhatIsLeft) {
  const std::string file = png(1, 30, 40);
  const images::Image image = picture(1, 30, 40);
  ImageReader reader;
  std::vector<std::byte> pixels;
  reader.open(bytes_of(file), "picture");
  EXPECT_EQ(reader.height(), 30u);
  EXPECT_EQ(reader.width(), 40u);
  reader.read(12, 13, pixels);
  EXPECT_EQ(pixels, resized(image.view(), 12, 13));

  reader.open(bytes_of(file), "picture");
  reader.crop({4, 6, 20, 30});
  reader.crop({1, 2, 10, 12});
  EXPECT_EQ(reader.height(), 10u);
  reader.read(12, 13, pixels);
  EXPECT_EQ(pixels, resized(image.view(5, 8, 10, 12), 12, 13));
}

TEST(ImageReader, DecodesAtAFractionWhatIsShrunkMuch) {
  const std::string file = jpeg(2, 160, 240);
  images::Image eighth;
  images::Decoder().decode(bytes_of(file), "picture", {.needed_height = 20, .needed_width = 30},
                           eighth);
  ASSERT_EQ(eighth.height, 20u);
  ImageReader reader;
  std::vector<std::byte> pixels;
  reader.open(bytes_of(file), "picture");
  reader.read(20, 30, pixels);
  EXPECT_EQ(pixels, resized(eighth.view(), 20, 30));
  // A part with a quarter of the pixels needs twice the resolution.
  images::Image fourth;
  images::Decoder().decode(bytes_of(file), "picture", {.needed_height = 40, .needed_width = 60},
                           fourth);
  ASSERT_EQ(fourth.height, 40u);
  reader.open(bytes_of(file), "picture");
  reader.crop({80, 120, 80, 120});
  reader.read(20, 30, pixels);
  EXPECT_EQ(pixels, resized(fourth.view(20, 30, 20, 30), 20, 30));
}

TEST(ImageReader, EnlargesAPartInPlace) {
  const images::Image image = picture(3, 10, 12);
  std::vector<std::byte> pixels = resized(image.view(), 10, 12);
  ImageReader().enlarge({2, 3, 5, 4}, 10, 12, pixels);
  EXPECT_EQ(pixels, resized(image.view(2, 3, 5, 4), 10, 12));
}

TEST(ImageReader, TakesTheSmallestPartOfTheSmallestImage) {
  ImageReader reader;
  std::vector<std::byte> pixels;
  for (const std::string& file : {png(1, 1, 1), jpeg(1, 1, 1), jpeg(1, 900, 1), jpeg(1, 1, 900)}) {
    reader.open(bytes_of(file), "picture");
    reader.crop({reader.height() - 1, reader.width() - 1, 1, 1});
    reader.read(7, 5, pixels);
    EXPECT_EQ(pixels.size(), 105u);
  }
}

TEST(ImageReader, NamesWhatIsNoImage) {
  ImageReader reader;
  try {
    reader.open(bytes_of("GIF89a"), "cats/1.jpg");
    FAIL() << "no error";
  } catch (const Invalid& error) {
    EXPECT_STREQ(error.what(), "cats/1.jpg: expected a JPEG or PNG, found a GIF");
  }
}

}  // namespace
}  // namespace muster::data
