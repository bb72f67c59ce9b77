#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <span>
#include <string>

namespace muster::data {

// The bytes of a file, unpacked if they begin like gzip (RFC 1952), whatever the file's name.
// Consecutive members of a gzip file are one stream. Throws Invalid naming file and byte for
// damaged gzip data, or if anything other than a gzip member follows a member.
class ByteStream {
 public:
  // `size` is the file's own length. `file` must outlive the stream.
  ByteStream(std::istream& file, std::string name, uint64_t size);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Fills `out`; returns less than its size only at the end of the stream.
  size_t read(std::span<std::byte> out);

  // Skips up to `count` bytes; returns the number of skipped bytes.
  uint64_t skip(uint64_t count);

  const std::string& name() const { return name_; }
  bool gzipped() const { return inflater_ != nullptr; }
  // Whether the file ended in the middle of a gzip member. Then bytes are missing, even if as many
  // as were wanted could be read.
  bool is_cut() const;
  // The position in the unpacked stream.
  uint64_t position() const { return position_; }
  // The size of the file itself.
  uint64_t file_bytes() const { return size_; }
  // The largest size to which a valid file can unpack: its size, or 1032 times that (deflate's
  // limit).
  uint64_t most_bytes() const;

 private:
  struct Inflater;

  size_t read_file(std::byte* out, size_t count);
  size_t inflate(std::byte* out, size_t count);
  void end_of_member();

  std::istream& file_;
  std::string name_;
  uint64_t size_;
  uint64_t position_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace muster::data
