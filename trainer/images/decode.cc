#include "trainer/images/decode.h"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "common/error.h"
#include "trainer/images/bounds.h"
#include "trainer/images/bytes.h"
#include "trainer/images/jpeg_header.h"
#include "trainer/images/png_codec.h"

namespace muster::images {
namespace {

bool is_jpeg(Bytes bytes) {
  return begins_with(bytes, "\xff\xd8\xff");
}

bool is_png(Bytes bytes) {
  return begins_with(bytes, "\x89PNG\r\n\x1a\n");
}

Invalid unknown_format(Bytes bytes, std::string_view name) {
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

// Returns the largest divisor of both sides that leaves what the caller needs.
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

// Writes `from` into `to` as EXIF's orientation says that it is to be seen.
void turn(const Image& from, int orientation, Image& to) {
  const bool sideways = orientation >= 5;
  to.resize(sideways ? from.width : from.height, sideways ? from.height : from.width);
  // A pixel of the result comes from `first`, plus so many pixels for each row and column.
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

void check_pixels(const ImageSize& size, uint64_t most_pixels, std::string_view name) {
  if (size.height <= most_pixels / size.width) return;
  throw Invalid(
      fmt::format("{}: expected an image of at most {} pixels, found {}x{} (height x width)", name,
                  most_pixels, size.height, size.width));
}

void check_data(const ImageSize& size, uint64_t least, uint64_t found, std::string_view name) {
  if (found >= least) return;
  throw Invalid(fmt::format(
      "{}: truncated image: expected at least {} bytes for {}x{} pixels (height x width), found {}",
      name, least, size.height, size.width, found));
}

struct Decoder::Jpeg {
  Jpeg() : handle(tjInitDecompress()) {
    if (handle == nullptr) throw Unavailable("no memory for libjpeg-turbo");
  }
  ~Jpeg() { tjDestroy(handle); }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  tjhandle handle;
};

// Throws Invalid if the decoder sees an image of another size than the header that was checked: it
// would take memory for that one.
void Decoder::check_jpeg_size(Bytes bytes, std::string_view name, const ImageSize& stored) {
  int width = 0, height = 0, subsampling = 0, colours = 0;
  tjDecompressHeader3(jpeg_->handle, reinterpret_cast<const unsigned char*>(bytes.data()),
                      bytes.size(), &width, &height, &subsampling, &colours);
  // No size: an error, which decoding tells.
  const bool same = std::cmp_equal(width, stored.width) && std::cmp_equal(height, stored.height);
  if (width <= 0 || height <= 0 || same) return;
  throw Invalid(fmt::format(
      "{}: damaged JPEG: expected one frame, of {}x{} pixels (height x width), found another of "
      "{}x{}",
      name, stored.height, stored.width, height, width));
}

Decoder::Decoder() : jpeg_(std::make_unique<Jpeg>()) {}
Decoder::~Decoder() = default;

void Decoder::decode(Bytes bytes, std::string_view name, const DecodeOptions& options,
                     Image& image) {
  if (is_jpeg(bytes)) {
    decode_jpeg(bytes, name, options, image);
  } else if (is_png(bytes)) {
    decode_png(bytes, name, options.most_pixels, image, rows_);
  } else {
    throw unknown_format(bytes, name);
  }
}

void Decoder::decode_jpeg(Bytes bytes, std::string_view name, const DecodeOptions& options,
                          Image& image) {
  const JpegHeader header = read_jpeg_header(bytes, name);
  check_pixels(seen_size(header), options.most_pixels, name);
  check_data(seen_size(header), header.least_bytes, bytes.size(), name);
  check_jpeg_size(bytes, name, {header.height, header.width});
  const int divisor = divisor_for(header, options);
  Image& decoded = header.orientation == 1 ? image : scratch_;
  decoded.resize(scaled(header.height, divisor), scaled(header.width, divisor));
  const bool cmyk = header.components == 4;
  if (cmyk) cmyk_.resize(decoded.height * decoded.width * 4);
  const int status = tjDecompress2(
      jpeg_->handle, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
      cmyk ? cmyk_.data() : decoded.pixels.data(), static_cast<int>(decoded.width), 0,
      static_cast<int>(decoded.height), cmyk ? TJPF_CMYK : TJPF_RGB, TJFLAG_LIMITSCANS);
  if (status != 0) {
    const std::string_view complaint = tjGetErrorStr2(jpeg_->handle);
    // libjpeg keeps its first warning alone, and none can come after the end marker (0xd9).
    const bool harmless =
        tjGetErrorCode(jpeg_->handle) == TJERR_WARNING &&
        complaint.find("extraneous bytes before marker 0xd9") != std::string_view::npos;
    if (!harmless) {
      throw Invalid(fmt::format("{}: damaged JPEG of {}x{} pixels (height x width), {} bytes: {}",
                                name, header.height, header.width, bytes.size(), complaint));
    }
  }
  if (cmyk) cmyk_to_rgb(cmyk_, header.inverted, decoded);
  if (header.orientation != 1) turn(decoded, header.orientation, image);
}

ImageSize read_size(Bytes bytes, std::string_view name) {
  if (is_jpeg(bytes)) return seen_size(read_jpeg_header(bytes, name));
  if (is_png(bytes)) return read_png_size(bytes, name);
  throw unknown_format(bytes, name);
}

}  // namespace muster::images
