#include "trainer/data/files/byte_stream.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "common/threads/watched_work.h"

namespace muster::data {
namespace {

constexpr size_t kChunk = 64 * 1024;

// Returns zlib's message, in words that do not require knowledge of zlib.
std::string_view complaint_of(const z_stream& stream) {
  const std::string_view said = stream.msg == nullptr ? "bad data" : stream.msg;
  if (said == "incorrect data check")
    return "CRC mismatch: these are not the bytes that were packed";
  if (said == "incorrect length check") return "length mismatch: not as many bytes as were packed";
  return said;
}

}  // namespace

struct ByteStream::Inflater {
  Inflater() : input(kChunk) {
    // 16 means a gzip wrapper and nothing else.
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw Unavailable("no memory for zlib");
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  uint64_t consumed() const { return fed - stream.avail_in; }

  z_stream stream{};
  std::vector<std::byte> input;
  uint64_t fed = 0;  // bytes of the file given to zlib so far
  bool done = false;
  bool cut = false;
};

ByteStream::ByteStream(std::istream& file, std::string name, uint64_t size)
    : file_(file), name_(std::move(name)), size_(size) {
  if (file_.peek() != 0x1f) {
    file_.clear();
    return;
  }
  std::array<std::byte, 2> magic;
  const size_t got = read_file(magic.data(), magic.size());
  if (got == 2 && magic[1] == std::byte{0x8b}) inflater_ = std::make_unique<Inflater>();
  file_.clear();
  file_.seekg(0);
}

ByteStream::~ByteStream() = default;

bool ByteStream::is_cut() const {
  return gzipped() && inflater_->cut;
}

uint64_t ByteStream::most_bytes() const {
  return gzipped() ? size_ * 1032 : size_;
}

size_t ByteStream::read(std::span<std::byte> out) {
  const size_t got =
      gzipped() ? inflate(out.data(), out.size()) : read_file(out.data(), out.size());
  position_ += got;
  return got;
}

uint64_t ByteStream::skip(uint64_t count) {
  std::array<std::byte, 16 * 1024> dropped;
  uint64_t total = 0;
  while (total < count) {
    const size_t want = std::min<uint64_t>(dropped.size(), count - total);
    const size_t got = read(std::span(dropped).first(want));
    total += got;
    if (got < want) break;
  }
  return total;
}

size_t ByteStream::read_file(std::byte* out, size_t count) {
  const WatchedWork work(WatchedWork::Kind::storage, "reading", name_);
  file_.read(reinterpret_cast<char*>(out), static_cast<std::streamsize>(count));
  if (file_.bad()) throw Unavailable(name_ + ": cannot be read");
  return static_cast<size_t>(file_.gcount());
}

size_t ByteStream::inflate(std::byte* out, size_t count) {
  Inflater& in = *inflater_;
  size_t total = 0;
  while (total < count && !in.done) {
    if (in.stream.avail_in == 0) {
      const size_t got = read_file(in.input.data(), in.input.size());
      if (got == 0) {
        in.done = in.cut = true;
        break;
      }
      in.fed += got;
      in.stream.next_in = reinterpret_cast<Bytef*>(in.input.data());
      in.stream.avail_in = static_cast<uInt>(got);
    }
    const uInt room = static_cast<uInt>(std::min<size_t>(count - total, 1u << 30));
    in.stream.next_out = reinterpret_cast<Bytef*>(out + total);
    in.stream.avail_out = room;
    const int status = ::inflate(&in.stream, Z_NO_FLUSH);
    total += room - in.stream.avail_out;
    if (status == Z_STREAM_END) {
      end_of_member();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw Invalid(fmt::format("{}: damaged gzip data at byte {} (byte {} unpacked): {}", name_,
                                in.consumed(), position_ + total, complaint_of(in.stream)));
    }
  }
  return total;
}

void ByteStream::end_of_member() {
  Inflater& in = *inflater_;
  const uint64_t end = in.consumed();
  if (end == size_) {
    in.done = true;
    return;
  }
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(end));
  std::array<std::byte, 2> magic{};
  const size_t got = read_file(magic.data(), magic.size());
  if (got < 2 || magic[0] != std::byte{0x1f} || magic[1] != std::byte{0x8b}) {
    throw Invalid(
        fmt::format("{}: {} bytes after the end of the gzip data at byte {}; expected none", name_,
                    size_ - end, end));
  }
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(end));
  in.fed = end;
  in.stream.avail_in = 0;
  inflateReset(&in.stream);
}

}  // namespace muster::data
