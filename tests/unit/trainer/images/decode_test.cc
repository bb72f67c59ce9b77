#include "trainer/images/decode.h"

#include <turbojpeg.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "common/error.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/images/fixture.h"
#include "trainer/images/encode.h"
#include "trainer/images/exif.h"
#include "trainer/images/name.h"

namespace muster::images {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kHeight = 19, kWidth = 27;  // of the fixtures

Image decode(const std::string& bytes, const DecodeOptions& options = {}) {
  Image image;
  Decoder().decode(bytes_of(bytes), "FILE", options, image);
  return image;
}

std::string error_of(const std::string& bytes, const DecodeOptions& options = {}) {
  try {
    decode(bytes, options);
  } catch (const Invalid& error) {
    return error.what();
  }
  return "no error";
}

int largest_difference(const std::vector<uint8_t>& found, const std::string& expected) {
  int largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(found[i] - static_cast<uint8_t>(expected[i])));
  }
  return largest;
}

struct Case {
  const char* file;
  bool sideways = false;
};

class DecodeTest : public testing::TestWithParam<Case> {};

// The pixels of Pillow for JPEG and of TensorFlow for PNG. Different releases of libjpeg-turbo may
// round differently.
TEST_P(DecodeTest, MakesThePixelsThatOthersMake) {
  const std::string file = GetParam().file;
  const Image image = decode(fixture(file));
  EXPECT_EQ(image.height, GetParam().sideways ? kWidth : kHeight);
  EXPECT_EQ(image.width, GetParam().sideways ? kHeight : kWidth);
  const std::string expected = fixture(file + ".rgb");
  ASSERT_EQ(image.pixels.size(), expected.size());
  EXPECT_LE(largest_difference(image.pixels, expected), file.ends_with(".png") ? 0 : 2);
  const ImageSize size = read_size(bytes_of(fixture(file)), file);
  EXPECT_EQ(size.height, image.height);
  EXPECT_EQ(size.width, image.width);
}

INSTANTIATE_TEST_SUITE_P(
    Files, DecodeTest,
    testing::Values(Case{"halved-chroma.jpg"}, Case{"full-chroma.jpg"}, Case{"progressive.jpg"},
                    Case{"coded-as-rgb.jpg"}, Case{"grey.jpg"}, Case{"cmyk.jpg"},
                    Case{"orientation-1.jpg"}, Case{"orientation-2.jpg"}, Case{"orientation-3.jpg"},
                    Case{"orientation-4.jpg"}, Case{"orientation-5.jpg", true},
                    Case{"orientation-6.jpg", true}, Case{"orientation-7.jpg", true},
                    Case{"orientation-8.jpg", true}, Case{"rgb.png"}, Case{"rgba.png"},
                    Case{"grey.png"}, Case{"grey-alpha.png"}, Case{"one-bit.png"},
                    Case{"palette.png"}, Case{"palette-transparent.png"}, Case{"interlaced.png"},
                    Case{"rgb-16-bit.png"}, Case{"grey-16-bit.png"}),
    [](const auto& info) {
      std::string name = info.param.file;
      std::ranges::replace_if(
          name, [](char c) { return c == '-' || c == '.'; }, '_');
      return name;
    });

TEST(Decoder, IsReusedForImagesOfAnyKind) {
  Decoder decoder;
  Image image;
  const auto decodes = [&](const std::string& file) {
    decoder.decode(bytes_of(fixture(file)), file, {}, image);
    EXPECT_EQ(image.pixels, decode(fixture(file)).pixels) << file;
  };
  decodes("cmyk.jpg");
  decodes("orientation-6.jpg");
  EXPECT_THROW(decoder.decode(bytes_of(fixture("rgb.png").substr(0, 200)), "cut", {}, image),
               Invalid);
  decodes("interlaced.png");
  EXPECT_THROW(decoder.decode(bytes_of(fixture("grey.jpg").substr(0, 420)), "cut", {}, image),
               Invalid);
  decodes("grey.jpg");
  decodes("progressive.jpg");
}

// TurboJPEG makes YCCK of CMYK.
TEST(Decoder, TakesYcck) {
  std::vector<unsigned char> cmyk;
  for (int i = 0; i < 16 * 16; ++i) cmyk.insert(cmyk.end(), {200, 100, 50, 128});
  tjhandle handle = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  ASSERT_EQ(
      tjCompress2(handle, cmyk.data(), 16, 0, 16, TJPF_CMYK, &bytes, &size, TJSAMP_444, 95, 0), 0);
  const std::string jpeg(reinterpret_cast<const char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(handle);
  const Image image = decode(jpeg);
  EXPECT_NEAR(image.pixels[0], 200 * 128 / 255, 3);
  EXPECT_NEAR(image.pixels[1], 100 * 128 / 255, 3);
  EXPECT_NEAR(image.pixels[2], 50 * 128 / 255, 3);
}

TEST(Decoder, DecodesAJpegNoSmallerThanNeeded) {
  Image large;
  large.resize(240, 320);
  const std::string jpeg = encode_jpeg(large.view(), 80);
  struct Row {
    size_t needed_height, needed_width, height, width;
  };
  for (const Row& row : std::initializer_list<Row>{{0, 0, 240, 320},
                                                   {241, 10, 240, 320},
                                                   {121, 10, 240, 320},
                                                   {120, 160, 120, 160},
                                                   {120, 161, 240, 320},
                                                   {61, 80, 120, 160},
                                                   {60, 80, 60, 80},
                                                   {31, 40, 60, 80},
                                                   {30, 40, 30, 40},
                                                   {1, 1, 30, 40},
                                                   {1000, 1000, 240, 320}}) {
    const Image image =
        decode(jpeg, {.needed_height = row.needed_height, .needed_width = row.needed_width});
    EXPECT_EQ(image.height, row.height) << row.needed_height << "x" << row.needed_width;
    EXPECT_EQ(image.width, row.width) << row.needed_height << "x" << row.needed_width;
  }
}

// Noise on gradients, of colours that change from pixel to pixel.
Image noise(size_t height, size_t width) {
  Image image;
  image.resize(height, width);
  uint32_t random = 1;
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    random = random * 1664525 + 1013904223;
    image.pixels[i] = static_cast<uint8_t>((i / 3 % width) + (random >> 25));
  }
  return image;
}

// `flags` are TurboJPEG's; `orientation` 1 to 8 is written as EXIF.
std::string jpeg_with(const Image& image, int subsampling, int flags = 0, int orientation = 1) {
  tjhandle handle = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  EXPECT_EQ(
      tjCompress2(handle, image.pixels.data(), static_cast<int>(image.width), 0,
                  static_cast<int>(image.height), TJPF_RGB, &bytes, &size, subsampling, 90, flags),
      0);
  std::string jpeg(reinterpret_cast<const char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(handle);
  if (orientation == 1) return jpeg;
  std::string exif(
      "\xff\xe1\0\x1e"
      "Exif\0\0II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0",
      28);
  exif += static_cast<char>(orientation);
  return jpeg.insert(2, exif + std::string(3, '\0'));
}

std::vector<uint8_t> pixels_of(const ImageView& view) {
  std::vector<uint8_t> pixels;
  for (size_t y = 0; y < view.height; ++y)
    pixels.insert(pixels.end(), view.row(y), view.row(y) + 3 * view.width);
  return pixels;
}

// Decodes windows of the image everywhere in it, and compares their pixels with those of the whole
// image at the same scale.
void expect_windows_of_the_whole(const std::string& jpeg, const std::string& name) {
  Decoder decoder;
  Image whole, part;
  const ImageSize size = read_size(bytes_of(jpeg), name);
  for (const size_t divisor : {1, 2, 4, 8}) {
    DecodeOptions options{.needed_height = (size.height + divisor - 1) / divisor,
                          .needed_width = (size.width + divisor - 1) / divisor};
    decoder.decode(bytes_of(jpeg), name, options, whole);
    ASSERT_EQ(whole.height, options.needed_height);
    for (const auto& [height, width] : {std::pair<size_t, size_t>{1, 1}, {9, 40}, {48, 17}})
      for (size_t top = 0; top + height <= size.height; top += 13)
        for (size_t left = 0; left + width <= size.width; left += 17) {
          options.window = {top, left, height, width};
          const ImageView view = decoder.decode(bytes_of(jpeg), name, options, part);
          const size_t first = top / divisor, column = left / divisor;
          const size_t end = (top + height + divisor - 1) / divisor,
                       right = (left + width + divisor - 1) / divisor;
          ASSERT_EQ(pixels_of(view),
                    pixels_of(whole.view(first, column, end - first, right - column)))
              << name << " at 1/" << divisor << ": " << height << "x" << width << " at " << top
              << ", " << left;
        }
  }
}

// Multiples of 8: so the borders of windows are those of pixels at each scale.
TEST(Decoder, MakesThePixelsOfTheWholeImageInAWindow) {
  const Image image = noise(104, 136);
  const std::pair<const char*, int> subsamplings[] = {{"4:4:4", TJSAMP_444}, {"4:2:2", TJSAMP_422},
                                                      {"4:2:0", TJSAMP_420}, {"grey", TJSAMP_GRAY},
                                                      {"4:4:0", TJSAMP_440}, {"4:1:1", TJSAMP_411}};
  for (const auto& [name, subsampling] : subsamplings) {
    expect_windows_of_the_whole(jpeg_with(image, subsampling), name);
    expect_windows_of_the_whole(jpeg_with(image, subsampling, TJFLAG_PROGRESSIVE),
                                std::string("progressive ") + name);
  }
}

TEST(Decoder, MakesAWindowOfAnImageThatIsTurned) {
  const Image image = noise(64, 88);
  for (int orientation = 2; orientation <= 8; ++orientation)
    expect_windows_of_the_whole(jpeg_with(image, TJSAMP_420, 0, orientation),
                                "orientation " + std::to_string(orientation));
}

TEST(Decoder, FindsDamageOutsideOfTheWindow) {
  const std::string jpeg = jpeg_with(noise(104, 136), TJSAMP_420);
  const DecodeOptions options{.window = {8, 8, 16, 16}};
  ASSERT_EQ(error_of(jpeg, options), "no error");
  for (size_t size = jpeg.size() / 2; size < jpeg.size(); size += 3)
    EXPECT_THAT(error_of(jpeg.substr(0, size), options), HasSubstr("FILE: damaged JPEG")) << size;
}

TEST(Decoder, MakesAWindowOfOtherFormats) {
  for (const char* file : {"rgb.png", "cmyk.jpg", "coded-as-rgb.jpg", "progressive.jpg"}) {
    const Image whole = decode(fixture(file));
    Image part;
    const ImageView view =
        Decoder().decode(bytes_of(fixture(file)), file, {.window = {3, 5, 11, 13}}, part);
    EXPECT_EQ(pixels_of(view), pixels_of(whole.view(3, 5, 11, 13))) << file;
  }
}

TEST(Decoder, CountsWhatIsNeededAfterTheTurn) {
  const std::string jpeg = fixture("orientation-6.jpg");  // seen as 27 x 19
  EXPECT_EQ(decode(jpeg, {.needed_height = 14, .needed_width = 10}).height, 14u);
  EXPECT_EQ(decode(jpeg, {.needed_height = 14, .needed_width = 11}).height, 27u);
}

TEST(Decoder, RefusesEveryTruncation) {
  for (const char* file : {"halved-chroma.jpg", "progressive.jpg", "cmyk.jpg", "orientation-8.jpg",
                           "rgb.png", "interlaced.png", "palette-transparent.png"}) {
    const std::string bytes = fixture(file);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_THAT(error_of(bytes.substr(0, size)), HasSubstr("FILE: ")) << file << " of " << size;
    }
  }
}

TEST(Decoder, RefusesEveryFlippedBitOfAPng) {
  for (const char* file : {"rgb.png", "palette-transparent.png"}) {
    std::string bytes = fixture(file);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      // Transparency is ignored, and so is a damaged chunk of it.
      if (const std::string error = error_of(bytes); error == "no error") {
        EXPECT_EQ(decode(bytes).pixels, decode(fixture(file)).pixels) << file << " bit " << bit;
      } else {
        EXPECT_THAT(error, HasSubstr("FILE: ")) << file << " bit " << bit;
      }
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    }
  }
}

// A JPEG has no checksum, so a flipped bit can give another whole image.
TEST(Decoder, SurvivesEveryFlippedBitOfAJpeg) {
  size_t refused = 0;
  for (const char* file : {"halved-chroma.jpg", "progressive.jpg", "orientation-3.jpg"}) {
    std::string bytes = fixture(file);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      refused += error_of(bytes, {.most_pixels = 1 << 20}) == "no error" ? 0 : 1;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    }
  }
  EXPECT_GT(refused, 1000u);
}

// The header of a JPEG of `height` x `width` pixels, and no data.
std::string jpeg_of(int height, int width) {
  std::string bytes("\xff\xd8\xff\xc0\0\x0b\x08", 7);
  for (const int side : {height, width}) {
    bytes.push_back(static_cast<char>(side >> 8));
    bytes.push_back(static_cast<char>(side));
  }
  return bytes + std::string("\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0", 14);
}

std::string big_endian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}

// A chunk of a PNG; `content` begins with its name.
std::string chunk_of(const std::string& content) {
  const auto crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
  return big_endian(static_cast<uint32_t>(content.size() - 4)) + content + big_endian(crc);
}

// The beginning of a PNG of `height` x `width` pixels.
std::string png_of(uint32_t height, uint32_t width) {
  return "\x89PNG\r\n\x1a\n" +
         chunk_of("IHDR" + big_endian(width) + big_endian(height) +
                  std::string("\x08\x02\0\0\0", 5)) +
         chunk_of("IDAT");
}

// The header of an image of 10 x 10 pixels. The decoder does not see it, but a whole image of 19 x
// 27 before it: 0xff00 is not the beginning of a segment that is passed over.
std::string jpeg_with_a_hidden_frame() {
  const std::string hidden = fixture("progressive.jpg").substr(2);
  std::string bytes("\xff\xd8\xff\0", 4);
  bytes.push_back(static_cast<char>((hidden.size() + 2) >> 8));
  bytes.push_back(static_cast<char>(hidden.size() + 2));
  return bytes + hidden + jpeg_of(10, 10).substr(2);
}

TEST(Decoder, SaysWhatIsWrong) {
  const std::string jpeg = fixture("grey.jpg"), png = fixture("rgb.png");
  const auto changed = [](std::string bytes, size_t at, std::string_view with) {
    return bytes.replace(at, with.size(), with);
  };
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  struct Row {
    const char* name;
    std::string bytes;
    DecodeOptions options;
    const char* message;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"nothing", "", {}, "FILE: expected a JPEG or PNG, found no bytes"},
           {"text", "hello", {}, "found bytes that begin with 68 65 6c 6c 6f"},
           {"gif", "GIF89a...", {}, "expected a JPEG or PNG, found a GIF"},
           {"webp", "RIFF....WEBP", {}, "found a RIFF file, such as WebP"},
           {"large jpeg", jpeg, {.most_pixels = 500}, "at most 500 pixels, found 19x27"},
           {"large png", png, {.most_pixels = 500}, "at most 500 pixels, found 19x27"},
           {"hostile jpeg",
            jpeg_of(65500, 65500),
            {},
            "at most 67108864 pixels, found 65500x65500"},
           {"less hostile",
            jpeg_of(8000, 8000),
            {},
            "expected at least 125000 bytes for 8000x8000 pixels (height x width), found 25"},
           {"damaged png", changed(png, 16, std::string("\0\1", 2)), {}, "CRC error"},
           {"hostile png", png_of(60000, 60000), {}, "at most 67108864 pixels, found 60000x60000"},
           {"less hostile png",
            png_of(2000, 30000),
            {},
            "expected at least 174418 bytes for 2000x30000 pixels"},
           {"no height", jpeg_of(0, 10), {}, "at least 1x1 pixels, found 0x10"},
           {"12 bits", changed(jpeg, frame + 4, "\x0c"), {}, "8 bits a sample, found 12"},
           {"2 components", changed(jpeg, frame + 9, "\2"), {}, "1, 3 or 4 components, found 2"},
           {"no marker", changed(jpeg, 2, "\1"), {}, "expected a JPEG or PNG"},
           {"hidden frame",
            jpeg_with_a_hidden_frame(),
            {.most_pixels = 500},
            "at most 500 pixels, found 19x27"},
           {"reserved marker",
            changed(jpeg, 3, "\xbf"),
            {},
            "FILE: damaged JPEG of 442 bytes: Unsupported marker type 0xbf"},
           {"no frame", jpeg.substr(0, 2) + "\xff\xd9", {}, "FILE: damaged JPEG of 4 bytes: "},
           {"no length",
            std::string("\xff\xd8\xff\xe0\0\1", 6),
            {},
            "FILE: damaged JPEG of 6 bytes: "},
           {"short data",
            jpeg.substr(0, jpeg.size() - 60),
            {},
            "FILE: damaged JPEG of 19x27 pixels (height x width), 382 bytes: Premature end"},
           {"short png", png.substr(0, png.size() - 60), {}, "damaged PNG at byte"},
           {"png without pixels", png.substr(0, 33), {}, "the data end too early"},
       }) {
    EXPECT_THAT(error_of(row.bytes, row.options), HasSubstr(row.message)) << row.name;
  }
}

// Pillow decodes these files too.
TEST(Decoder, AcceptsIrregularitiesThatLeaveAllPixelsAndNamesThem) {
  const std::string whole = fixture("full-chroma.jpg");
  const auto with = [&](size_t at, std::string_view spare) {
    return std::string(whole).insert(at, spare);
  };
  std::string revision = whole;
  revision[11] = 7;  // of JFIF
  struct Row {
    std::string bytes;
    const char* oddity;
  };
  for (const Row& row : std::initializer_list<Row>{
           {whole, ""},
           {with(whole.size() - 2, std::string(200, '\0')), "extraneous bytes before marker 0xd9"},
           {with(20, "\1\2\3"), "3 extraneous bytes before marker"},
           {with(20, std::string("\1\xff\0\2", 4)), "4 extraneous bytes before marker"},
           {revision, "unknown JFIF revision number 7.01"}}) {
    Decoder decoder;
    Image image;
    decoder.decode(bytes_of(row.bytes), "FILE", {}, image);
    EXPECT_EQ(image.pixels, decode(whole).pixels) << row.oddity;
    EXPECT_THAT(decoder.oddity(), HasSubstr(row.oddity));
    decoder.decode(bytes_of(whole), "FILE", {}, image);
    EXPECT_EQ(decoder.oddity(), "");
  }
}

TEST(Decoder, FindsDamageBehindAnIrregularity) {
  std::string bytes = fixture("full-chroma.jpg");
  bytes.insert(20, "\1\2\3");
  EXPECT_THAT(error_of(bytes.substr(0, bytes.size() - 60)), HasSubstr("Premature end"));
}

TEST(Decoder, MakesANameOnlyForAMessage) {
  int made = 0;
  const Name name = [&] {
    ++made;
    return std::string("FILE");
  };
  Decoder decoder;
  Image image;
  for (const char* file : {"full-chroma.jpg", "orientation-6.jpg", "cmyk.jpg", "rgb.png"}) {
    decoder.decode(bytes_of(fixture(file)), name, {}, image);
    decoder.header(bytes_of(fixture(file)), name);
  }
  EXPECT_EQ(made, 0);
  EXPECT_THROW(decoder.decode(bytes_of("hello"), name, {}, image), Invalid);
  EXPECT_EQ(made, 1);
}

// Other programs write APP1 segments that are not EXIF, and data before the EXIF data.
TEST(Decoder, FindsTheOrientationAmongOtherMarkers) {
  const std::string jpeg = jpeg_with(noise(16, 24), TJSAMP_420, 0, 6);
  const std::string xmp("\xff\xe1\0\x08http\0\0", 10), comment("\xff\xfe\0\4ab", 6);
  for (const std::string& other : {xmp, comment, comment + xmp})
    for (const size_t at : {size_t{2}, size_t{34}})  // before and behind the EXIF data
      EXPECT_EQ(read_header(bytes_of(std::string(jpeg).insert(at, other)), "FILE").orientation, 6);
}

// Puts a chunk of EXIF data with this orientation before the pixels of a PNG.
std::string with_exif(std::string png, int orientation) {
  std::string exif("eXIfII*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0", 22);
  exif += static_cast<char>(orientation) + std::string(3, '\0');
  return png.insert(33, chunk_of(exif));  // after the header
}

TEST(Decoder, TurnsAPngAsExifSays) {
  const std::string png = fixture("rgb.png");
  const Image stored = decode(png);
  ASSERT_NE(stored.height, stored.width);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string turned = with_exif(png, orientation);
    const Image seen = decode(turned);
    const bool sideways = orientation >= 5;
    ASSERT_EQ(seen.height, sideways ? stored.width : stored.height) << orientation;
    ASSERT_EQ(seen.width, sideways ? stored.height : stored.width) << orientation;
    const ImageSize size = read_size(bytes_of(turned), "turned.png");
    EXPECT_EQ(size.height, seen.height);
    EXPECT_EQ(size.width, seen.width);
    for (size_t y = 0; y < seen.height; ++y) {
      for (size_t x = 0; x < seen.width; ++x) {
        size_t row = sideways ? x : y, column = sideways ? y : x;
        const bool up =
            orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
        const bool left =
            orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
        if (up) row = stored.height - 1 - row;
        if (left) column = stored.width - 1 - column;
        const auto pixel = [](const Image& image, size_t at_row, size_t at_column) {
          const uint8_t* at = image.view().row(at_row) + 3 * at_column;
          return std::vector<uint8_t>(at, at + 3);
        };
        ASSERT_EQ(pixel(seen, y, x), pixel(stored, row, column)) << orientation;
      }
    }
  }
}

TEST(ExifOrientation, IsReadInBothByteOrders) {
  const std::string little("II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0", 22);
  const std::string big("MM\0*\0\0\0\10\0\1\1\x12\0\3\0\0\0\1\0\3\0\0", 22);
  EXPECT_EQ(exif_orientation(bytes_of(little)), 6);
  EXPECT_EQ(exif_orientation(bytes_of(big)), 3);
}

TEST(ExifOrientation, IsOneWhereTheDataAreDamaged) {
  const std::string whole("II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0", 22);
  for (size_t size = 0; size < 19; ++size) {
    EXPECT_EQ(exif_orientation(bytes_of(whole.substr(0, size))), 1) << size;
  }
  std::string text = whole;
  text[12] = 2;  // a text
  EXPECT_EQ(exif_orientation(bytes_of(text)), 1);
  std::string nine = whole;
  nine[18] = 9;
  EXPECT_EQ(exif_orientation(bytes_of(nine)), 1);
  std::string far = whole;
  far.replace(4, 4, "\xff\xff\xff\xff");  // the directory is outside
  EXPECT_EQ(exif_orientation(bytes_of(far)), 1);
}

}  // namespace
}  // namespace muster::images
