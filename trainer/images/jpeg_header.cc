#include "trainer/images/jpeg_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/error.h"
#include "trainer/images/bytes.h"

namespace muster::images {
namespace {

uint32_t at(Bytes bytes, size_t index) {
  return std::to_integer<uint32_t>(bytes[index]);
}

uint32_t big16(Bytes bytes, size_t index) {
  return at(bytes, index) << 8 | at(bytes, index + 1);
}

bool stands_alone(uint32_t marker) {
  return marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
}

// Whether decoders refuse this marker. (They skip 0xff00, which is not a marker.)
bool is_reserved(uint32_t marker) {
  return marker < 0xc0 && marker != 0x01;
}

bool is_frame(uint32_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

// `segment`: the frame header after its length.
void read_frame(uint32_t marker, Bytes segment, std::string_view name, JpegHeader& header) {
  if (segment.size() < 6) {
    throw Invalid(
        fmt::format("{}: damaged JPEG: expected a frame header of at least 6 bytes, found {}", name,
                    segment.size()));
  }
  const uint32_t bits = at(segment, 0);
  header.height = big16(segment, 1);
  header.width = big16(segment, 3);
  header.components = static_cast<int>(at(segment, 5));
  if (bits != 8) {
    throw Invalid(fmt::format("{}: expected a JPEG of 8 bits a sample, found {}", name, bits));
  }
  if (header.height == 0 || header.width == 0) {
    throw Invalid(
        fmt::format("{}: expected a JPEG of at least 1x1 pixels, found {}x{} (height x width)",
                    name, header.height, header.width));
  }
  if (header.components != 1 && header.components != 3 && header.components != 4) {
    throw Invalid(fmt::format("{}: expected a JPEG of 1, 3 or 4 components, found {}", name,
                              header.components));
  }
  const size_t components = static_cast<size_t>(header.components);
  if (segment.size() < 6 + 3 * components) {
    throw Invalid(fmt::format("{}: damaged JPEG: expected a frame header of {} bytes, found {}",
                              name, 6 + 3 * components, segment.size()));
  }
  const bool arithmetic = marker >= 0xc9;
  if (arithmetic) return;
  uint64_t blocks = 1, widest = 1, highest = 1;  // sizes of a coding unit (MCU)
  if (components > 1) {
    blocks = 0;
    for (size_t c = 0; c < components; ++c) {
      const uint64_t across = at(segment, 7 + 3 * c) >> 4, down = at(segment, 7 + 3 * c) & 15;
      blocks += across * down;
      widest = std::max(widest, across);
      highest = std::max(highest, down);
    }
  }
  header.least_bytes = header.height * header.width / (64 * widest * highest) * blocks / 8;
}

}  // namespace

JpegHeader read_jpeg_header(Bytes bytes, std::string_view name) {
  const auto truncated = [&](size_t where) {
    return Invalid(fmt::format(
        "{}: truncated JPEG: expected a frame header, found the end of the data at byte {}", name,
        where));
  };
  JpegHeader header;
  size_t position = 2;  // after the marker that begins an image
  for (;;) {
    if (position >= bytes.size()) throw truncated(bytes.size());
    while (position < bytes.size() && at(bytes, position) != 0xff) ++position;
    while (position < bytes.size() && at(bytes, position) == 0xff) ++position;
    if (position >= bytes.size()) throw truncated(bytes.size());
    const uint32_t marker = at(bytes, position++);
    if (marker == 0 || stands_alone(marker)) continue;
    if (is_reserved(marker)) {
      throw Invalid(
          fmt::format("{}: damaged JPEG: expected a marker from 0xc0 to 0xfe at byte {}, found "
                      "{:#04x}",
                      name, position - 1, marker));
    }
    if (marker == 0xd9 || marker == 0xda) {
      throw Invalid(
          fmt::format("{}: damaged JPEG: expected a frame header before marker {:#04x} at byte {}",
                      name, marker, position - 1));
    }
    if (bytes.size() - position < 2) throw truncated(bytes.size());
    const size_t length = big16(bytes, position);
    if (length < 2) {
      throw Invalid(
          fmt::format("{}: damaged JPEG: expected a length of at least 2 at byte {}, found {}",
                      name, position, length));
    }
    if (length > bytes.size() - position) throw truncated(bytes.size());
    const Bytes segment = bytes.subspan(position + 2, length - 2);
    position += length;
    if (is_frame(marker)) {
      read_frame(marker, segment, name, header);
      return header;
    }
    if (marker == 0xe1 && begins_with(segment, std::string_view("Exif\0\0", 6))) {
      header.orientation = exif_orientation(segment.subspan(6));
    }
    if (marker == 0xee && begins_with(segment, "Adobe")) header.inverted = true;
  }
}

}  // namespace muster::images
