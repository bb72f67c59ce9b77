#include "trainer/images/jpeg_codec.h"

#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>

#include "common/error.h"
#include "trainer/images/bytes.h"

namespace muster::images {
namespace {

// Limit for a progressive file: each scan costs a pass over the whole image.
constexpr int kMostScans = 500;
constexpr int kExifMarker = JPEG_APP0 + 1;

// libjpeg leaves a failed call by longjmp. Therefore the functions that call libjpeg have no local
// object with a destructor, and report errors by these messages.
struct Complaints {
  jpeg_error_mgr manager;  // the first member, because libjpeg passes its address
  std::jmp_buf out;
  std::array<char, JMSG_LENGTH_MAX> message{};  // the error, or else the first sign of damage
  std::array<char, JMSG_LENGTH_MAX> oddity{};   // the first warning that is not a sign of damage
};

Complaints& complaints_of(j_common_ptr jpeg) {
  return *reinterpret_cast<Complaints*>(jpeg->err);
}

[[noreturn]] void leave(j_common_ptr jpeg) {
  Complaints& complaints = complaints_of(jpeg);
  jpeg->err->format_message(jpeg, complaints.message.data());
  std::longjmp(complaints.out, 1);
}

// Whether every pixel is decoded in spite of this warning: it is about extra bytes, or about
// headers that no pixel depends on.
bool leaves_all_pixels(int warning) {
  return warning == JWRN_EXTRANEOUS_DATA || warning == JWRN_JFIF_MAJOR ||
         warning == JWRN_ADOBE_XFORM || warning == JWRN_NOT_SEQUENTIAL ||
         warning == JWRN_BOGUS_PROGRESSION;
}

void keep_warning(j_common_ptr jpeg, int level) {
  if (level >= 0) return;  // it is not a warning
  Complaints& complaints = complaints_of(jpeg);
  auto& kept = leaves_all_pixels(jpeg->err->msg_code) ? complaints.oddity : complaints.message;
  if (kept[0] == '\0') jpeg->err->format_message(jpeg, kept.data());
}

void limit_scans(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMostScans) return;
  Complaints& complaints = complaints_of(jpeg);
  std::snprintf(complaints.message.data(), complaints.message.size(),
                "a progressive JPEG of more than %d scans", kMostScans);
  std::longjmp(complaints.out, 1);
}

// The region that is decoded for a part of an image. When libjpeg makes colours of full resolution,
// it treats the borders of the decoded region like borders of the image; so the region has some
// more pixels on each side. libjpeg decodes whole blocks.
struct Region {
  JDIMENSION top = 0;
  JDIMENSION left = 0;
  JDIMENSION width = 0;
};

Region region_around(const Window& part, const jpeg_decompress_struct& jpeg, int divisor) {
  Region all{0, 0, jpeg.output_width};
  // In a progressive file the blocks around a block may be used to smooth it.
  if (jpeg.progressive_mode != 0) return all;
  const auto block = static_cast<size_t>(DCTSIZE / divisor);
  const size_t above = 2 * block * static_cast<size_t>(jpeg.max_v_samp_factor);
  const size_t beside = block * static_cast<size_t>(jpeg.max_h_samp_factor);
  const size_t left = part.left - std::min(part.left, beside);
  const size_t right = std::min<size_t>(part.left + part.width + beside, jpeg.output_width);
  return {static_cast<JDIMENSION>(part.top - std::min(part.top, above)),
          static_cast<JDIMENSION>(left), static_cast<JDIMENSION>(right - left)};
}

// Checks the frame header, which the library has read even if it refuses what follows.
void check_frame(const jpeg_decompress_struct& jpeg, const Name& name) {
  if (jpeg.data_precision != 8)
    throw Invalid(
        fmt::format("{}: expected a JPEG of 8 bits a sample, found {}", name, jpeg.data_precision));
  if (jpeg.image_height == 0 || jpeg.image_width == 0)
    throw Invalid(
        fmt::format("{}: expected a JPEG of at least 1x1 pixels, found {}x{} (height x width)",
                    name, jpeg.image_height, jpeg.image_width));
  if (jpeg.num_components != 1 && jpeg.num_components != 3 && jpeg.num_components != 4)
    throw Invalid(fmt::format("{}: expected a JPEG of 1, 3 or 4 components, found {}", name,
                              jpeg.num_components));
}

int orientation_of(const jpeg_decompress_struct& jpeg) {
  int orientation = 1;
  for (const jpeg_marker_struct* at = jpeg.marker_list; at != nullptr; at = at->next) {
    const Bytes segment = std::as_bytes(std::span(at->data, at->data_length));
    if (at->marker == kExifMarker && begins_with(segment, std::string_view("Exif\0\0", 6)))
      orientation = exif_orientation(segment.subspan(6));
  }
  return orientation;
}

uint64_t least_bytes_of(const jpeg_decompress_struct& jpeg) {
  if (jpeg.arith_code != 0) return 0;
  uint64_t blocks = 1, unit = 1;  // blocks of a coding unit (MCU), and blocks in its area
  if (jpeg.num_components > 1) {
    blocks = 0;
    for (int c = 0; c < jpeg.num_components; ++c)
      blocks += static_cast<uint64_t>(jpeg.comp_info[c].h_samp_factor) *
                static_cast<uint64_t>(jpeg.comp_info[c].v_samp_factor);
    unit = static_cast<uint64_t>(jpeg.max_h_samp_factor) *
           static_cast<uint64_t>(jpeg.max_v_samp_factor);
  }
  return uint64_t{jpeg.image_height} * jpeg.image_width / (DCTSIZE2 * unit) * blocks / 8;
}

}  // namespace

struct JpegReader::Library {
  Library() {
    jpeg.err = jpeg_std_error(&complaints.manager);
    complaints.manager.error_exit = leave;
    complaints.manager.emit_message = keep_warning;
    progress.progress_monitor = limit_scans;
    if (!create()) throw Unavailable("no memory for libjpeg-turbo");
    jpeg.progress = &progress;
  }
  ~Library() { jpeg_destroy_decompress(&jpeg); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  bool create() {
    if (setjmp(complaints.out) != 0) return false;
    jpeg_create_decompress(&jpeg);
    jpeg_save_markers(&jpeg, kExifMarker, 0xffff);
    return true;
  }

  bool read_header(std::span<const std::byte> bytes) {
    if (setjmp(complaints.out) != 0) return false;
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg, TRUE);
    return true;
  }

  // Returns false if the region to decode is not known; else sets `region`.
  bool start(int divisor, const Window& part, Region& region) {
    if (setjmp(complaints.out) != 0) return false;
    jpeg.scale_num = 1;
    jpeg.scale_denom = static_cast<unsigned>(divisor);
    jpeg.out_color_space = jpeg.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&jpeg);
    region = region_around(part, jpeg, divisor);
    if (region.width < jpeg.output_width) jpeg_crop_scanline(&jpeg, &region.left, &region.width);
    if (region.top > 0) jpeg_skip_scanlines(&jpeg, region.top);
    return true;
  }

  // Reads the part's rows through `row`, and to the end of the file.
  bool read_rows(const Window& part, const Region& region, uint8_t* row, uint8_t* pixels) {
    if (setjmp(complaints.out) != 0) return false;
    const auto pixel = static_cast<size_t>(jpeg.output_components);
    const size_t bytes = part.width * pixel;
    while (jpeg.output_scanline < part.top + part.height) {
      const size_t y = jpeg.output_scanline;
      uint8_t* const out = y < part.top ? nullptr : pixels + (y - part.top) * bytes;
      uint8_t* to = out != nullptr && part.width == region.width ? out : row;
      jpeg_read_scanlines(&jpeg, &to, 1);
      if (out != nullptr && to == row)
        std::memcpy(out, row + (part.left - region.left) * pixel, bytes);
    }
    // If libjpeg skipped all remaining rows, it would not check them.
    const JDIMENSION left = jpeg.output_height - jpeg.output_scanline;
    if (left > 1) jpeg_skip_scanlines(&jpeg, left - 1);
    if (left > 0) jpeg_read_scanlines(&jpeg, &row, 1);
    jpeg_finish_decompress(&jpeg);
    return true;
  }

  Complaints complaints;
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct jpeg{};
};

JpegReader::JpegReader() : library_(std::make_unique<Library>()) {}
JpegReader::~JpegReader() = default;

const JpegHeader& JpegReader::open(std::span<const std::byte> bytes, const Name& name) {
  Library& library = *library_;
  jpeg_decompress_struct& jpeg = library.jpeg;
  jpeg_abort_decompress(&jpeg);  // cleans up after an error
  library.complaints.message[0] = library.complaints.oddity[0] = '\0';
  jpeg.num_components = 0;  // until the library has read a frame header
  const bool is_read = library.read_header(bytes);
  if (jpeg.num_components > 0) check_frame(jpeg, name);
  if (!is_read)
    throw Invalid(fmt::format("{}: damaged JPEG of {} bytes: {}", name, bytes.size(),
                              library.complaints.message.data()));
  bytes_ = bytes.size();
  header_ = {.height = jpeg.image_height,
             .width = jpeg.image_width,
             .components = jpeg.num_components,
             .inverted = jpeg.saw_Adobe_marker != 0,
             .orientation = orientation_of(jpeg),
             .least_bytes = least_bytes_of(jpeg)};
  return header_;
}

std::string JpegReader::read(int divisor, const Window& part, const Name& name, uint8_t* pixels) {
  Library& library = *library_;
  Region region;
  bool is_read = library.start(divisor, part, region);
  if (is_read) row_.resize(region.width * static_cast<size_t>(library.jpeg.output_components));
  is_read = is_read && library.read_rows(part, region, row_.data(), pixels);
  if (is_read && library.complaints.message[0] == '\0') return library.complaints.oddity.data();
  throw Invalid(fmt::format("{}: damaged JPEG of {}x{} pixels (height x width), {} bytes: {}", name,
                            header_.height, header_.width, bytes_,
                            library.complaints.message.data()));
}

}  // namespace muster::images
