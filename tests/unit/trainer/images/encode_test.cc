#include "trainer/images/encode.h"

#include <cstdlib>

#include "common/error.h"
#include "gtest/gtest.h"
#include "tests/unit/trainer/images/fixture.h"
#include "trainer/images/decode.h"

namespace muster::images {
namespace {

Image picture() {
  Image image;
  image.resize(37, 53);
  for (size_t y = 0; y < image.height; ++y) {
    for (size_t x = 0; x < image.width; ++x) {
      uint8_t* pixel = image.row(y) + 3 * x;
      pixel[0] = static_cast<uint8_t>(4 * x);
      pixel[1] = static_cast<uint8_t>(6 * y);
      pixel[2] = static_cast<uint8_t>(128 + x - y);
    }
  }
  return image;
}

Image decoded(const std::string& bytes) {
  Image image;
  Decoder().decode(bytes_of(bytes), "test", {}, image);
  return image;
}

TEST(EncodePng, LosesNothing) {
  const Image image = picture();
  for (const int level : {1, 9}) {
    EXPECT_EQ(decoded(encode_png(image.view(), level)).pixels, image.pixels);
  }
}

TEST(EncodePng, TakesAPartOfAnImage) {
  const Image image = picture(), part = decoded(encode_png(image.view(5, 7, 11, 13)));
  ASSERT_EQ(part.height, 11u);
  ASSERT_EQ(part.width, 13u);
  for (size_t y = 0; y < 11; ++y) {
    for (size_t x = 0; x < 13 * 3; ++x) EXPECT_EQ(part.row(y)[x], image.row(y + 5)[7 * 3 + x]);
  }
}

TEST(EncodeJpeg, KeepsTheImageAboutAsItIs) {
  const Image image = picture();
  for (const Chroma chroma : {Chroma::full, Chroma::halved}) {
    const Image read = decoded(encode_jpeg(image.view(), 95, chroma));
    ASSERT_EQ(read.pixels.size(), image.pixels.size());
    for (size_t i = 0; i < read.pixels.size(); ++i) {
      EXPECT_NEAR(read.pixels[i], image.pixels[i], chroma == Chroma::full ? 12 : 24);
    }
  }
}

TEST(Encode, RefusesAnImageOfNoPixels) {
  EXPECT_THROW(encode_png(Image().view()), Invalid);
  EXPECT_THROW(encode_jpeg(Image().view(), 90), Invalid);
}

}  // namespace
}  // namespace muster::images
