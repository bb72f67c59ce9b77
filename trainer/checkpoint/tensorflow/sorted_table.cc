#include "trainer/checkpoint/tensorflow/sorted_table.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <span>

#include "common/digest.h"
#include "common/error.h"
#include "trainer/records/framing.h"

namespace muster::checkpoint {
namespace {

constexpr size_t kFooterBytes = 48;
constexpr size_t kTrailerBytes = 5;  // bytes after a block: its compression and its checksum
constexpr uint64_t kMagic = 0xdb4775248b80fb57;
constexpr char kPlain = 0, kSnappy = 1;

template <typename Number>
Number little_endian(std::string_view bytes) {
  Number number = 0;
  for (size_t i = sizeof number; i-- > 0;)
    number = static_cast<Number>(number << 8 | static_cast<unsigned char>(bytes[i]));
  return number;
}

// Reads numbers and bytes from the front of a text. After a read beyond the end, all further reads
// fail.
class Cursor {
 public:
  explicit Cursor(std::string_view rest) : rest_(rest) {}

  bool failed() const { return failed_; }
  bool at_end() const { return rest_.empty(); }

  uint64_t varint() {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = take(1);
      if (failed_) return 0;
      const auto bits = static_cast<uint64_t>(static_cast<unsigned char>(byte[0]));
      number |= (bits & 0x7f) << shift;
      if (bits < 0x80) return number;
    }
    failed_ = true;
    return 0;
  }

  std::string_view take(uint64_t count) {
    if (failed_ || count > rest_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

struct Handle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

std::optional<Handle> read_handle(Cursor& cursor) {
  Handle handle;
  handle.offset = cursor.varint();
  handle.size = cursor.varint();
  return cursor.failed() ? std::nullopt : std::optional(handle);
}

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  TableEntries read() {
    if (bytes_.size() < kFooterBytes)
      fail(0, fmt::format("at least {} bytes, the footer", kFooterBytes),
           fmt::format("{}", bytes_.size()));
    const size_t footer = bytes_.size() - kFooterBytes;
    const auto magic = little_endian<uint64_t>(bytes_.substr(bytes_.size() - sizeof kMagic));
    if (magic != kMagic)
      fail(bytes_.size() - sizeof kMagic, fmt::format("the number {:016x}", kMagic),
           fmt::format("{:016x}", magic));
    Cursor cursor(bytes_.substr(footer, kFooterBytes - sizeof kMagic));
    read_handle(cursor);  // the handle of metadata blocks, which Muster does not need
    const auto index = read_handle(cursor);
    if (!index) fail(footer, "the places of two blocks", "something else");
    each_entry(*index, [&](const std::string&, std::string_view value) {
      Cursor place(value);
      const auto handle = read_handle(place);
      if (!handle) fail(index->offset, "the place of a block in each entry", "something else");
      if (handle->offset < read_) fail(handle->offset, "blocks one after the other", "an overlap");
      read_entries(*handle);
      read_ = handle->offset + handle->size + kTrailerBytes;
    });
    return std::move(entries_);
  }

 private:
  [[noreturn]] void fail(uint64_t at, const std::string& expected, const std::string& found) const {
    throw Invalid(
        fmt::format("{}: expected a table in LevelDB's format with {} at byte {}, found {}", file_,
                    expected, at, found));
  }

  // Returns the content of a block; `unpacked` holds it if it is compressed.
  std::string_view block(const Handle& handle, std::string& unpacked) const {
    const uint64_t most = bytes_.size() - kFooterBytes;
    if (handle.size > most || handle.offset > most || handle.size + kTrailerBytes > most ||
        handle.offset > most - handle.size - kTrailerBytes)
      fail(handle.offset, "a block that lies in the file", fmt::format("{} bytes", handle.size));
    const std::string_view whole = bytes_.substr(handle.offset, handle.size + 1);
    const auto stored =
        little_endian<uint32_t>(bytes_.substr(handle.offset + handle.size + 1, sizeof(uint32_t)));
    if (records::mask_crc(crc32c(std::as_bytes(std::span(whole)))) != stored)
      fail(handle.offset, "a block with its checksum", "another checksum");
    const std::string_view content = whole.substr(0, handle.size);
    if (whole.back() == kPlain) return content;
    if (whole.back() != kSnappy)
      fail(handle.offset + handle.size, "compression 0 or 1",
           std::to_string(static_cast<unsigned char>(whole.back())));
    unpacked = unpack_snappy(content, kMostTableBytes,
                             fmt::format("{}: block at byte {}", file_, handle.offset));
    return unpacked;
  }

  // Calls `each` with the keys and values of a block. An entry contains only the end of its key,
  // after the part shared with the key before.
  template <typename Each>
  void each_entry(const Handle& handle, Each each) const {
    std::string unpacked, key;
    const std::string_view content = block(handle, unpacked);
    constexpr size_t kNumber = sizeof(uint32_t);
    const uint64_t restarts =
        content.size() < kNumber
            ? content.size()
            : uint64_t{little_endian<uint32_t>(content.substr(content.size() - kNumber))};
    if (content.size() < kNumber || restarts > content.size() / kNumber - 1)
      fail(handle.offset, "a block with a list of restarts", "none");
    Cursor cursor(content.substr(0, content.size() - (restarts + 1) * kNumber));
    while (!cursor.at_end()) {
      const uint64_t shared = cursor.varint(), more = cursor.varint(), length = cursor.varint();
      const std::string_view rest = cursor.take(more);
      const std::string_view value = cursor.take(length);
      if (cursor.failed() || shared > key.size() || shared + more > kLongestKey)
        fail(handle.offset,
             fmt::format("a block of whole entries with keys of at most {} bytes", kLongestKey),
             "something else");
      key.resize(shared);
      key += rest;
      each(key, value);
    }
  }

  void read_entries(const Handle& handle) {
    each_entry(handle, [&](const std::string& key, std::string_view value) {
      if (!entries_.empty() && key <= entries_.back().first)
        fail(handle.offset, "keys that ascend", "one that does not");
      content_ += key.size() + value.size() + sizeof entries_[0];
      if (content_ > kMostTableContent)
        fail(handle.offset, fmt::format("at most {} bytes of keys and values", kMostTableContent),
             "more");
      entries_.emplace_back(key, std::string(value));
    });
  }

  const std::string_view bytes_;
  const std::string& file_;
  TableEntries entries_;
  size_t content_ = 0;  // bytes of entries_
  uint64_t read_ = 0;   // end of the newest block
};

// Appends `length` bytes from `distance` before the end of `out`; source and copy may overlap.
// Returns false if this is not possible.
bool repeat(std::string& out, size_t distance, size_t length, size_t most) {
  if (distance == 0 || distance > out.size() || length > most - out.size()) return false;
  for (size_t i = 0; i < length; ++i) out += out[out.size() - distance];
  return true;
}

// Appends the next element; returns false if it is damaged.
bool unpack_element(Cursor& cursor, std::string& out, size_t most) {
  const std::string_view first = cursor.take(1);
  if (cursor.failed()) return false;
  const auto tag = static_cast<unsigned char>(first[0]);
  const size_t upper = tag >> 2;
  const auto number = [&](size_t bytes) {
    size_t value = 0;
    const std::string_view taken = cursor.take(bytes);
    for (size_t i = taken.size(); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  };
  if ((tag & 3) == 0) {  // bytes as they are
    const size_t length = (upper < 60 ? upper : number(upper - 59)) + 1;
    const std::string_view bytes = cursor.take(length);
    if (cursor.failed() || bytes.size() > most - out.size()) return false;
    out += bytes;
    return true;
  }
  if ((tag & 3) == 1) {
    const size_t distance = (upper >> 3) << 8 | number(1);
    return !cursor.failed() && repeat(out, distance, (upper & 7) + 4, most);
  }
  const size_t distance = number((tag & 3) == 2 ? 2 : 4);
  return !cursor.failed() && repeat(out, distance, upper + 1, most);
}

}  // namespace

TableEntries read_table(std::string_view bytes, const std::string& file) {
  return Reader(bytes, file).read();
}

std::string unpack_snappy(std::string_view bytes, size_t most, const std::string& where) {
  Cursor cursor(bytes);
  const uint64_t length = cursor.varint();
  if (cursor.failed() || length > most)
    throw Invalid(fmt::format("{}: expected at most {} bytes compressed by Snappy, found {}", where,
                              most, cursor.failed() ? "no length" : std::to_string(length)));
  std::string out;
  bool whole = true;
  while (whole && !cursor.at_end()) whole = unpack_element(cursor, out, length);
  if (!whole || out.size() != length)
    throw Invalid(fmt::format("{}: expected {} bytes compressed by Snappy, found damage after {}",
                              where, length, out.size()));
  return out;
}

}  // namespace muster::checkpoint
