#include "trainer/images/png_codec.h"

#include <fmt/format.h>
#include <png.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "common/error.h"
#include "trainer/images/bounds.h"
#include "trainer/images/bytes.h"
#include "trainer/images/encode.h"
#include "trainer/images/exif.h"

namespace muster::images {
namespace {

// libpng leaves a failed call by longjmp. Therefore the functions that call libpng have no local
// object with a destructor, and report errors by these messages.
struct Failure {
  std::array<char, 128> message{};
};

void keep_message(png_structp png, png_const_charp message) {
  auto& failure = *static_cast<Failure*>(png_get_error_ptr(png));
  std::snprintf(failure.message.data(), failure.message.size(), "%s", message);
  png_longjmp(png, 1);
}

// A warning of libpng is about a part that the pixels do not depend on.
void ignore_warning(png_structp, png_const_charp) {}

struct Source {
  const std::byte* next;
  size_t left;
};

void take_bytes(png_structp png, png_bytep out, size_t count) {
  auto& source = *static_cast<Source*>(png_get_io_ptr(png));
  if (source.left < count) png_error(png, "the data end too early");
  std::memcpy(out, source.next, count);
  source.next += count;
  source.left -= count;
}

class Reader {
 public:
  Reader(Bytes bytes, const Name& name)
      : source_{bytes.data(), bytes.size()}, size_(bytes.size()), name_(name) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure_, keep_message, ignore_warning);
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, &info_, nullptr);
      throw Unavailable("no memory for libpng");
    }
  }
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Reads up to the pixels. Returns the size; the raw bytes of all pixels are then in raw_bytes().
  ImageSize header() {
    if (!read_header()) fail();
    return {png_get_image_height(png_, info_), png_get_image_width(png_, info_)};
  }
  // Returns the orientation in a chunk of EXIF data before the pixels; 1 if there is none.
  int orientation() {
    png_uint_32 size = 0;
    png_bytep exif = nullptr;
    if (png_get_eXIf_1(png_, info_, &size, &exif) == 0) return 1;
    return exif_orientation(std::as_bytes(std::span(exif, size)));
  }
  uint64_t raw_bytes() const {
    return uint64_t{png_get_rowbytes(png_, info_)} * png_get_image_height(png_, info_);
  }

  // Sets the remaining options, then reads the pixels of all rows.
  void pixels(Image& image, std::vector<unsigned char*>& rows) {
    if (!prepare()) fail();
    if (png_get_rowbytes(png_, info_) != image.stride()) {
      throw Invalid(fmt::format("{}: expected a PNG that becomes rows of {} bytes, found {}", name_,
                                image.stride(), png_get_rowbytes(png_, info_)));
    }
    rows.resize(image.height);
    for (size_t y = 0; y < image.height; ++y) rows[y] = image.row(y);
    if (!read_pixels(rows.data())) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw Invalid(fmt::format("{}: damaged PNG at byte {} of {}: {}", name_, size_ - source_.left,
                              size_, failure_.message.data()));
  }

  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, &source_, take_bytes);
    // Ignore all chunks except those that the pixels and their turn depend on.
    constexpr png_byte kExif[] = "eXIf";
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_AS_DEFAULT, kExif, 1);
    png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
    png_read_info(png_, info_);
    return true;
  }

  bool prepare() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    png_set_gray_to_rgb(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_pixels(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  Source source_;
  size_t size_;
  const Name& name_;
  Failure failure_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

void append_bytes(png_structp png, png_bytep bytes, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<const char*>(bytes), count);
}

void flush_nothing(png_structp) {}

bool write(png_structp png, png_infop info, const ImageView& image, int level, std::string* out) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_write_fn(png, out, append_bytes, flush_nothing);
  png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
  png_set_compression_level(png, level);
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (size_t y = 0; y < image.height; ++y) png_write_row(png, image.row(y));
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

ImageHeader read_png_header(Bytes bytes, const Name& name) {
  Reader reader(bytes, name);
  const ImageSize stored = reader.header();
  return {stored, reader.orientation()};
}

int decode_png(Bytes bytes, const Name& name, uint64_t most_pixels, Image& image,
               std::vector<unsigned char*>& rows) {
  Reader reader(bytes, name);
  const ImageSize size = reader.header();
  check_pixels(size, most_pixels, name);
  // Deflate packs at most 1032 bytes into one.
  check_data(size, reader.raw_bytes() / 1032, bytes.size(), name);
  image.resize(size.height, size.width);
  reader.pixels(image, rows);
  return reader.orientation();
}

std::string encode_png(const ImageView& image, int level) {
  std::string out;
  Failure failure;
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure, keep_message, ignore_warning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  const bool done = info != nullptr && write(png, info, image, level, &out);
  png_destroy_write_struct(&png, &info);
  if (!done) {
    throw Invalid(fmt::format("cannot make a PNG of {}x{} pixels (height x width): {}",
                              image.height, image.width, failure.message.data()));
  }
  return out;
}

}  // namespace muster::images
