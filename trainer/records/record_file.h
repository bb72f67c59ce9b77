#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/descriptor.h"

namespace muster::records {

// Where a record's bytes are in its file.
struct Place {
  uint64_t offset = 0;  // of its header
  uint64_t length = 0;  // of its bytes, without header and footer

  bool operator==(const Place&) const = default;
};

// A TFRecord file, read at any place by any number of threads. Lengths are believed only where
// their checksum fits and the file is that long, so no file makes the reader take more memory than
// the file's size.
class RecordFile {
 public:
  // Opens the file. Throws Invalid if there is no regular file, Unavailable for other errors of the
  // system.
  explicit RecordFile(const std::filesystem::path& path);

  // Returns the places of all records, in their order. Reads headers alone: the bytes are checked by
  // read().
  //
  // Calls `damage` with a message that names the file, the record's number and the byte for each
  // place where there is no whole record, and goes on with the next header whose checksum fits.
  // `damage` may count and may throw to give up. Throws Invalid for a file that is compressed.
  std::vector<Place> index(const std::function<void(const std::string& message)>& damage) const;

  // As above; throws the first message as Invalid.
  std::vector<Place> index() const;

  // Reads the bytes of a record that index() has found. `number`: its number, for messages. Throws
  // Invalid naming the file, the number and the byte if the checksum is of other bytes, or the file
  // has become shorter.
  void read(const Place& place, uint64_t number, std::string& bytes) const;

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }

 private:
  size_t read_at(uint64_t offset, char* out, size_t count) const;
  uint64_t next_header(uint64_t offset) const;

  std::filesystem::path path_;
  Descriptor file_;
  uint64_t size_ = 0;
};

}  // namespace muster::records
