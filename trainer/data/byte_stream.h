#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <span>
#include <string>

namespace muster::data {

// The bytes of a file, unpacked on the way if it begins like gzip (RFC 1952), whatever its name.
// Members of a gzip file that follow one another are one stream. Throws Invalid naming file and
// byte on damaged gzip data, or on anything after its end that is no gzip member.
class ByteStream {
 public:
  // `size` is the file's own length. `file` must outlive the stream.
  ByteStream(std::istream& file, std::string name, uint64_t size);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Fills `out` as far as there are bytes; less than its size only at the end.
  size_t read(std::span<std::byte> out);

  // Drops up to `count` bytes; returns how many there were.
  uint64_t skip(uint64_t count);

  const std::string& name() const { return name_; }
  bool gzipped() const { return inflater_ != nullptr; }
  // The file ended in the middle of a gzip member: what was read is not all, even where it is all
  // that was wanted.
  bool is_cut() const;
  // Of the unpacked stream.
  uint64_t position() const { return position_; }
  // Of the file itself.
  uint64_t file_bytes() const { return size_; }
  // No honest file unpacks to more than this: its size, or 1032 times that (deflate's limit).
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
