#include "trainer/data/files/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/error.h"
#include "trainer/data/files/storage.h"

namespace muster::data {
namespace {

constexpr uint64_t kMostElements = uint64_t{1} << 62;

struct Header {
  std::vector<uint64_t> dimensions;
  uint64_t bytes = 0;        // bytes of the header
  uint64_t sample_size = 1;  // elements of a sample
  uint64_t total() const { return bytes + dimensions[0] * sample_size; }
};

const char* unpacked(const ByteStream& stream) {
  return stream.gzipped() ? " unpacked" : "";
}

// Returns where the file is cut, for a stream that ended too early; "" if this is not known to be
// the reason.
std::string where_cut(const ByteStream& stream) {
  if (!stream.is_cut()) return "";
  return fmt::format("; the gzip file of {} bytes ends in the middle", stream.file_bytes());
}

uint32_t big_endian(const std::array<std::byte, 4>& b) {
  return std::to_integer<uint32_t>(b[0]) << 24 | std::to_integer<uint32_t>(b[1]) << 16 |
         std::to_integer<uint32_t>(b[2]) << 8 | std::to_integer<uint32_t>(b[3]);
}

uint32_t read_word(ByteStream& stream, const char* what) {
  const uint64_t at = stream.position();
  std::array<std::byte, 4> word{};
  const size_t got = stream.read(word);
  if (got < word.size()) {
    throw Invalid(fmt::format("{}: truncated at byte {}: expected 4 bytes of {}, found {}{}",
                              stream.name(), at, what, got, where_cut(stream)));
  }
  return big_endian(word);
}

const char* type_name(uint32_t code) {
  switch (code) {
    case 0x09:
      return " (signed byte)";
    case 0x0b:
      return " (int16)";
    case 0x0c:
      return " (int32)";
    case 0x0d:
      return " (float32)";
    case 0x0e:
      return " (float64)";
    default:
      return "";
  }
}

void check_magic(const std::string& name, uint32_t magic, bool labels) {
  const char* expected =
      labels ? "an IDX label file (0x00000801)" : "an IDX image file (0x00000803)";
  const uint32_t type = magic >> 8 & 0xff;
  const uint32_t dimensions = magic & 0xff;
  if (magic >> 16 != 0 || (type != 0x08 && *type_name(type) == 0)) {
    throw Invalid(fmt::format("{}: not an IDX file: expected {} at byte 0, found 0x{:08x}", name,
                              expected, magic));
  }
  if (type != 0x08) {
    throw Invalid(
        fmt::format("{}: expected element type 0x08 (unsigned byte) at byte 2, found "
                    "0x{:02x}{}",
                    name, type, type_name(type)));
  }
  if (labels && dimensions != 1) {
    throw Invalid(
        fmt::format("{}: expected {} at byte 0, found 0x{:08x}, an IDX file of {} "
                    "dimensions: are images given as labels?",
                    name, expected, magic, dimensions));
  }
  if (!labels && (dimensions < 2 || dimensions > 4)) {
    throw Invalid(fmt::format("{}: expected {} at byte 0, found 0x{:08x}{}", name, expected, magic,
                              dimensions == 1 ? ", an IDX label file: are labels given as images?"
                                              : ", which has no 2 to 4 dimensions"));
  }
}

[[noreturn]] void throw_truncated(const ByteStream& stream, const Header& header,
                                  const std::string& found) {
  throw Invalid(
      fmt::format("{}: truncated: expected {} bytes{} ({} of header and {} samples of {}, by the "
                  "dimensions at byte 4), found {}",
                  stream.name(), header.total(), unpacked(stream), header.bytes,
                  header.dimensions[0], header.sample_size, found));
}

[[noreturn]] void throw_truncated(const ByteStream& stream, const Header& header) {
  throw_truncated(stream, header, std::to_string(stream.position()) + where_cut(stream));
}

// Checks the size that the header promises before memory is allocated for it.
void require_room(const ByteStream& stream, const Header& header) {
  if (header.total() <= stream.most_bytes()) return;
  throw_truncated(stream, header,
                  stream.gzipped() ? fmt::format("a gzip file of {} bytes, which holds at most {}",
                                                 stream.file_bytes(), stream.most_bytes())
                                   : std::to_string(stream.file_bytes()));
}

Header read_header(ByteStream& stream, bool labels) {
  const uint32_t magic = read_word(stream, "the magic number");
  check_magic(stream.name(), magic, labels);
  Header header;
  const uint32_t count = magic & 0xff;
  header.bytes = 4 + 4 * count;
  uint64_t elements = 1;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t at = stream.position();
    const uint64_t size = read_word(stream, "a dimension");
    if (size == 0) {
      throw Invalid(fmt::format("{}: dimension {} at byte {} is 0; expected at least 1",
                                stream.name(), i, at));
    }
    if (size > kMostElements / elements) {
      throw Invalid(
          fmt::format("{}: dimension {} at byte {} is {}: with the {} elements of those before "
                      "it, more than any file holds",
                      stream.name(), i, at, size, elements));
    }
    header.dimensions.push_back(size);
    elements *= size;
    if (i > 0) header.sample_size *= size;
  }
  require_room(stream, header);
  return header;
}

void skip_exactly(ByteStream& stream, uint64_t bytes, const Header& header) {
  if (stream.skip(bytes) < bytes) throw_truncated(stream, header);
}

void read_exactly(ByteStream& stream, std::span<std::byte> out, const Header& header) {
  if (stream.read(out) < out.size()) throw_truncated(stream, header);
}

IdxShape shape_of(const Header& header) {
  return {header.dimensions[0], {header.dimensions.begin() + 1, header.dimensions.end()}};
}

void require_end(ByteStream& stream, const Header& header) {
  std::byte extra;
  if (stream.read(std::span(&extra, 1)) != 0) {
    throw Invalid(fmt::format("{}: bytes after the last sample at byte {}{}; expected the end",
                              stream.name(), header.total(),
                              stream.gzipped() ? " of the unpacked data" : ""));
  }
  if (stream.is_cut()) {
    throw Invalid(fmt::format(
        "{}: truncated: expected gzip's checksum after {} bytes unpacked, found the end of the "
        "file at byte {}",
        stream.name(), header.total(), stream.file_bytes()));
  }
}

void read_to_the_end(ByteStream& stream, const Header& header) {
  skip_exactly(stream, header.total() - stream.position(), header);
  require_end(stream, header);
}

}  // namespace

IdxShape read_idx_shape(ByteStream& stream) {
  return shape_of(read_header(stream, false));
}

void require_as_many(const IdxLabels& labels, const std::string& labels_name, uint64_t images,
                     const std::string& images_name) {
  if (labels.labels.size() == images) return;
  throw Invalid(
      fmt::format("{} has {} labels (count at byte 4) but {} has {} images: expected as many of "
                  "each",
                  labels_name, labels.labels.size(), images_name, images));
}

void read_idx_images(ByteStream& stream, const IdxShape& shape, uint64_t first,
                     std::span<std::byte> pixels) {
  const Header header = read_header(stream, false);
  if (shape_of(header) != shape) {
    throw Invalid(
        fmt::format("{}: expected {} samples of [{}] as before, found {} of [{}]: it was "
                    "changed while it was read",
                    stream.name(), shape.samples, fmt::join(shape.sample, ", "),
                    header.dimensions[0], fmt::join(shape_of(header).sample, ", ")));
  }
  skip_exactly(stream, first * header.sample_size, header);
  read_exactly(stream, pixels, header);
  read_to_the_end(stream, header);
}

void skip_idx_images(ByteStream& stream) {
  read_to_the_end(stream, read_header(stream, false));
}

IdxLabels read_idx_labels(ByteStream& stream) {
  const Header header = read_header(stream, true);
  Storage bytes(header.dimensions[0]);
  read_exactly(stream, bytes.bytes(), header);
  require_end(stream, header);
  IdxLabels labels;
  for (const std::byte label : bytes.bytes()) {
    labels.labels.push_back(std::to_integer<uint8_t>(label));
  }
  labels.largest = std::ranges::max(labels.labels);
  return labels;
}

}  // namespace muster::data
