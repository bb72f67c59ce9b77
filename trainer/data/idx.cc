#include "trainer/data/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/error.h"

namespace muster::data {
namespace {

struct Header {
  std::vector<uint64_t> dimensions;
  uint64_t bytes = 0;        // of the header
  uint64_t sample_size = 1;  // elements
  uint64_t total() const { return bytes + dimensions[0] * sample_size; }
};

uint32_t big_endian(const std::array<std::byte, 4>& b) {
  return std::to_integer<uint32_t>(b[0]) << 24 | std::to_integer<uint32_t>(b[1]) << 16 |
         std::to_integer<uint32_t>(b[2]) << 8 | std::to_integer<uint32_t>(b[3]);
}

uint32_t read_word(ByteStream& stream, const char* what) {
  const uint64_t at = stream.position();
  std::array<std::byte, 4> word{};
  const size_t got = stream.read(word);
  if (got < word.size()) {
    throw Invalid(fmt::format("{}: truncated at byte {}: expected 4 bytes of {}, found {}",
                              stream.name(), at, what, got));
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
    if (size > stream.most_bytes() / elements) {
      throw Invalid(
          fmt::format("{}: dimension {} at byte {} is {}: with the {} elements of those "
                      "before it, more than the {} bytes a {} file of this size can hold",
                      stream.name(), i, at, size, elements, stream.most_bytes(),
                      stream.gzipped() ? "gzipped" : "plain"));
    }
    header.dimensions.push_back(size);
    elements *= size;
    if (i > 0) header.sample_size *= size;
  }
  return header;
}

[[noreturn]] void throw_truncated(const ByteStream& stream, const Header& header) {
  throw Invalid(fmt::format(
      "{}: truncated at byte {}{}: expected {} bytes ({} of header, {} samples "
      "of {}), found {}",
      stream.name(), stream.position(), stream.gzipped() ? " of the unpacked data" : "",
      header.total(), header.bytes, header.dimensions[0], header.sample_size, stream.position()));
}

// The samples [skip, skip + returned count) of the file are selected.
uint64_t selected(const std::string& name, uint64_t samples, const Selection& selection) {
  const uint64_t skip = static_cast<uint64_t>(std::max<int64_t>(selection.skip, 0));
  if (skip >= samples) {
    throw Invalid(fmt::format("{}: skip {} leaves none of its {} samples", name, skip, samples));
  }
  const uint64_t rest = samples - skip;
  if (selection.take < 0) return rest;
  const uint64_t take = static_cast<uint64_t>(selection.take);
  if (take > rest || take == 0) {
    throw Invalid(
        fmt::format("{}: expected take to be from 1 to {} ({} samples, {} skipped), found {}", name,
                    rest, samples, skip, take));
  }
  return take;
}

void skip_exactly(ByteStream& stream, uint64_t bytes, const Header& header) {
  if (stream.skip(bytes) < bytes) throw_truncated(stream, header);
}

// Grows with what really arrives: a gzip header may promise a thousand times the file.
std::vector<uint8_t> read_exactly(ByteStream& stream, uint64_t bytes, const Header& header) {
  constexpr uint64_t kFirst = 64 << 20;
  std::vector<uint8_t> out;
  while (out.size() < bytes) {
    const size_t begin = out.size();
    out.resize(std::min<uint64_t>(bytes, std::max<uint64_t>(kFirst, 2 * begin)));
    const auto part = std::as_writable_bytes(std::span(out)).subspan(begin);
    if (stream.read(part) < part.size()) throw_truncated(stream, header);
  }
  return out;
}

void require_end(ByteStream& stream, const Header& header) {
  std::byte extra;
  if (stream.read(std::span(&extra, 1)) != 0) {
    throw Invalid(fmt::format("{}: bytes after the last sample at byte {}{}; expected the end",
                              stream.name(), header.total(),
                              stream.gzipped() ? " of the unpacked data" : ""));
  }
}

}  // namespace

IdxImages read_idx_images(ByteStream& stream, const Selection& selection) {
  const Header header = read_header(stream, false);
  IdxImages images;
  images.samples_in_file = header.dimensions[0];
  images.shape.assign(header.dimensions.begin() + 1, header.dimensions.end());
  images.count = selected(stream.name(), images.samples_in_file, selection);
  const uint64_t before =
      static_cast<uint64_t>(std::max<int64_t>(selection.skip, 0)) * header.sample_size;
  skip_exactly(stream, before, header);
  images.pixels = read_exactly(stream, images.count * header.sample_size, header);
  skip_exactly(stream, header.total() - stream.position(), header);
  require_end(stream, header);
  return images;
}

IdxLabels read_idx_labels(ByteStream& stream) {
  const Header header = read_header(stream, true);
  IdxLabels labels;
  labels.labels = read_exactly(stream, header.dimensions[0], header);
  require_end(stream, header);
  labels.largest = *std::max_element(labels.labels.begin(), labels.labels.end());
  return labels;
}

}  // namespace muster::data
