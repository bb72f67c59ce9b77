#include "trainer/records/record_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "common/error.h"
#include "trainer/records/framing.h"

namespace muster::records {
namespace {

constexpr uint64_t kOverhead = kHeaderBytes + kFooterBytes;

// Returns the compression of a file with this beginning; null if it is not compressed.
const char* compression_of(const std::array<char, kHeaderBytes>& header) {
  const auto first = static_cast<unsigned char>(header[0]);
  const auto second = static_cast<unsigned char>(header[1]);
  if (first == 0x1f && second == 0x8b) return "a gzip file";
  // RFC 1950: deflate with a window of up to 32 KiB, and a sum that 31 divides.
  const bool is_zlib = (first & 0x0f) == 8 && first >> 4 <= 7 && (first << 8 | second) % 31 == 0;
  return is_zlib ? "a file compressed by zlib (TFRecordOptions of the type ZLIB)" : nullptr;
}

}  // namespace

std::string name_of(const std::filesystem::path& file, uint64_t number, uint64_t offset) {
  return fmt::format("{}: record {} at byte {}", file.string(), number, offset);
}

std::vector<Place> RecordFile::index() const {
  return index([](const std::string& message) { throw Invalid(message); });
}

std::vector<Place> RecordFile::index(const OnDamage& on_damage) const {
  const uint64_t size = file_.size();
  std::vector<Place> places;
  for (uint64_t offset = 0; offset < size;) {
    if (size - offset < kOverhead) {
      on_damage(fmt::format("{}: truncated: expected at least {} bytes, found {}",
                            name_of(path(), places.size(), offset), kOverhead, size - offset));
      break;
    }
    std::array<char, kHeaderBytes> header{};
    file_.read_at(offset, std::as_writable_bytes(std::span(header)));
    const std::optional<uint64_t> length = length_of(header);
    if (length && *length <= size - offset - kOverhead) {
      places.push_back({offset, *length});
      offset += kOverhead + *length;
      continue;
    }
    if (const char* const packed = offset == 0 ? compression_of(header) : nullptr) {
      throw Invalid(fmt::format("{}: expected TFRecords, found {}: unpack it first",
                                path().string(), packed));
    }
    const uint64_t next = next_header(offset + 1);
    const std::string found = length ? fmt::format("truncated: expected {} bytes of data, found {}",
                                                   *length, size - offset - kOverhead)
                                     : "damaged: the length does not fit its checksum";
    on_damage(fmt::format("{}: {}; {} bytes are skipped", name_of(path(), places.size(), offset),
                          found, next - offset));
    offset = next;
  }
  return places;
}

// Returns the next offset where a header's checksum fits and the file is long enough for its
// record; the file's size if there is none. By chance a checksum fits at one place in four billion.
uint64_t RecordFile::next_header(uint64_t offset) const {
  constexpr uint64_t kChunk = 256 * 1024;
  const uint64_t size = file_.size();
  std::string chunk;
  while (offset < size && size - offset >= kOverhead) {
    chunk.resize(std::min(kChunk, size - offset));
    file_.read_at(offset, std::as_writable_bytes(std::span(chunk)));
    for (size_t at = 0; at + kHeaderBytes <= chunk.size(); ++at, ++offset) {
      if (size - offset < kOverhead) return size;
      const auto length =
          length_of(std::span<const char, kHeaderBytes>(chunk.data() + at, kHeaderBytes));
      if (length && *length <= size - offset - kOverhead) return offset;
    }
  }
  return size;
}

void RecordFile::read(const Place& place, uint64_t number, std::string& bytes) const {
  bytes.resize(place.length + kFooterBytes);
  try {
    file_.read_at(place.offset + kHeaderBytes, std::as_writable_bytes(std::span(bytes)));
  } catch (const Invalid& error) {
    throw Invalid(fmt::format("{}: {}", name_of(path(), number, place.offset), error.what()));
  }
  std::array<char, kFooterBytes> footer{};
  std::copy_n(bytes.end() - kFooterBytes, kFooterBytes, footer.begin());
  bytes.resize(place.length);
  if (!footer_fits(bytes, footer)) {
    throw Invalid(fmt::format("{}: damaged: {} bytes of data do not fit their checksum",
                              name_of(path(), number, place.offset), place.length));
  }
}

}  // namespace muster::records
