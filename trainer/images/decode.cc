#include "trainer/images/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "common/error.h"
#include "trainer/images/bounds.h"
#include "trainer/images/bytes.h"
#include "trainer/images/exif.h"
#include "trainer/images/png_codec.h"

namespace muster::images {
namespace {

bool is_jpeg(Bytes bytes) {
  return begins_with(bytes, "\xff\xd8\xff");
}

bool is_png(Bytes bytes) {
  return begins_with(bytes, "\x89PNG\r\n\x1a\n");
}

Invalid unknown_format(Bytes bytes, const Name& name) {
  std::string found = bytes.empty() ? "no bytes" : "bytes that begin with";
  for (const std::byte b : bytes.first(std::min<size_t>(bytes.size(), 8))) {
    found += fmt::format(" {:02x}", std::to_integer<int>(b));
  }
  if (begins_with(bytes, "GIF8")) found = "a GIF";
  if (begins_with(bytes, "BM")) found = "a BMP";
  if (begins_with(bytes, "RIFF")) found = "a RIFF file, such as WebP";
  return Invalid(fmt::format("{}: expected a JPEG or PNG, found {}", name, found));
}

ImageSize seen_size(const JpegHeader& header) {
  if (header.sideways()) return {header.width, header.height};
  return {header.height, header.width};
}

uint64_t scaled(uint64_t length, int divisor) {
  const auto d = static_cast<uint64_t>(divisor);
  return (length + d - 1) / d;
}

// Returns the largest divisor of both sides with which the size stays at least the needed one.
int divisor_for(const JpegHeader& header, const DecodeOptions& options) {
  if (options.needed_height == 0 || options.needed_width == 0) return 1;
  const ImageSize size = seen_size(header);
  for (const int divisor : {8, 4, 2}) {
    if (scaled(size.height, divisor) >= options.needed_height &&
        scaled(size.width, divisor) >= options.needed_width) {
      return divisor;
    }
  }
  return 1;
}

// Returns the smallest window that covers `window` in an image at 1/divisor of its size.
Window scaled_window(const Window& window, const ImageSize& size, int divisor) {
  const uint64_t height = scaled(size.height, divisor), width = scaled(size.width, divisor);
  if (window.height == 0) return {0, 0, height, width};
  const auto end = [](size_t border, uint64_t whole, uint64_t other) {
    return (border * other + whole - 1) / whole;
  };
  const size_t top = window.top * height / size.height, left = window.left * width / size.width;
  return {top, left, end(window.top + window.height, size.height, height) - top,
          end(window.left + window.width, size.width, width) - left};
}

// Returns the place of a window of the seen image in the stored image, at 1/divisor of its size.
Window as_stored(const Window& seen, const JpegHeader& header, int divisor) {
  Window stored = seen;
  if (header.sideways()) stored = {seen.left, seen.top, seen.width, seen.height};
  if (reverses_rows(header.orientation))
    stored.top = scaled(header.height, divisor) - stored.top - stored.height;
  if (reverses_columns(header.orientation))
    stored.left = scaled(header.width, divisor) - stored.left - stored.width;
  return stored;
}

// Writes `from` to `to`, turned by EXIF's orientation.
void turn(const Image& from, int orientation, Image& to) {
  const bool sideways = turns_sideways(orientation);
  to.resize(sideways ? from.width : from.height, sideways ? from.height : from.width);
  // The index in `from` of a pixel of the result is `first`, plus a number of pixels for each row
  // and column.
  const auto width = static_cast<std::ptrdiff_t>(from.width);
  const auto last_row = (static_cast<std::ptrdiff_t>(from.height) - 1) * width;
  struct Walk {
    std::ptrdiff_t first, down, right;
  };
  const std::array<Walk, 9> walks = {{{},
                                      {0, width, 1},
                                      {width - 1, width, -1},
                                      {last_row + width - 1, -width, -1},
                                      {last_row, -width, 1},
                                      {0, 1, width},
                                      {last_row, 1, -width},
                                      {last_row + width - 1, -1, -width},
                                      {width - 1, -1, width}}};
  const Walk& walk = walks[static_cast<size_t>(orientation)];
  for (size_t y = 0; y < to.height; ++y) {
    const uint8_t* pixel =
        from.pixels.data() + 3 * (walk.first + static_cast<std::ptrdiff_t>(y) * walk.down);
    uint8_t* out = to.row(y);
    for (size_t x = 0; x < to.width; ++x, out += 3, pixel += 3 * walk.right) {
      std::copy_n(pixel, 3, out);
    }
  }
}

void cmyk_to_rgb(const std::vector<uint8_t>& cmyk, bool inverted, Image& image) {
  const uint8_t flip = inverted ? 0 : 255;  // from here on 255 stands for no ink
  const size_t pixels = image.height * image.width;
  for (size_t i = 0; i < pixels; ++i) {
    const unsigned black = cmyk[4 * i + 3] ^ flip;
    for (size_t c = 0; c < 3; ++c) {
      const unsigned ink = cmyk[4 * i + c] ^ flip;
      image.pixels[3 * i + c] = static_cast<uint8_t>((ink * black + 127) / 255);
    }
  }
}

}  // namespace

void check_pixels(const ImageSize& size, uint64_t most_pixels, const Name& name) {
  if (size.height <= most_pixels / size.width) return;
  throw Invalid(
      fmt::format("{}: expected an image of at most {} pixels, found {}x{} (height x width)", name,
                  most_pixels, size.height, size.width));
}

void check_data(const ImageSize& size, uint64_t least, uint64_t found, const Name& name) {
  if (found >= least) return;
  throw Invalid(fmt::format(
      "{}: truncated image: expected at least {} bytes for {}x{} pixels (height x width), found {}",
      name, least, size.height, size.width, found));
}

ImageView Decoder::decode(Bytes bytes, const Name& name, const DecodeOptions& options,
                          Image& image) {
  oddity_.clear();
  if (is_jpeg(bytes)) {
    decode_jpeg(bytes, name, options, image);
    return image.view();
  }
  if (!is_png(bytes)) throw unknown_format(bytes, name);
  decode_png_turned(bytes, name, options.most_pixels, image);
  const Window part = scaled_window(options.window, {image.height, image.width}, 1);
  return image.view(part.top, part.left, part.height, part.width);
}

void Decoder::decode_png_turned(Bytes bytes, const Name& name, uint64_t most_pixels, Image& image) {
  const int orientation = decode_png(bytes, name, most_pixels, image, rows_);
  if (orientation == 1) return;
  std::swap(image, scratch_);
  turn(scratch_, orientation, image);
}

void Decoder::decode_jpeg(Bytes bytes, const Name& name, const DecodeOptions& options,
                          Image& image) {
  const JpegHeader& header = jpeg_.open(bytes, name);
  check_pixels(seen_size(header), options.most_pixels, name);
  check_data(seen_size(header), header.least_bytes, bytes.size(), name);
  const int divisor = divisor_for(header, options);
  const Window seen = scaled_window(options.window, seen_size(header), divisor);
  const Window part = as_stored(seen, header, divisor);
  Image& decoded = header.orientation == 1 ? image : scratch_;
  decoded.resize(part.height, part.width);
  const bool cmyk = header.components == 4;
  if (cmyk) cmyk_.resize(decoded.height * decoded.width * 4);
  oddity_ = jpeg_.read(divisor, part, name, cmyk ? cmyk_.data() : decoded.pixels.data());
  if (cmyk) cmyk_to_rgb(cmyk_, header.inverted, decoded);
  if (header.orientation != 1) turn(decoded, header.orientation, image);
}

ImageSize ImageHeader::seen() const {
  return turns_sideways(orientation) ? ImageSize{stored.width, stored.height} : stored;
}

ImageHeader Decoder::header(Bytes bytes, const Name& name) {
  if (is_png(bytes)) return read_png_header(bytes, name);
  if (!is_jpeg(bytes)) throw unknown_format(bytes, name);
  const JpegHeader& header = jpeg_.open(bytes, name);
  return {{header.height, header.width}, header.orientation};
}

ImageHeader read_header(Bytes bytes, const Name& name) {
  return Decoder().header(bytes, name);
}

ImageSize read_size(Bytes bytes, const Name& name) {
  return read_header(bytes, name).seen();
}

}  // namespace muster::images
