#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/system/input_file.h"

namespace muster::records {

// Where a record is in its file.
struct Place {
  uint64_t offset = 0;  // of its header
  uint64_t length = 0;  // of its bytes, without header and footer

  bool operator==(const Place&) const = default;
};

// A TFRecord file, read at any place and by any number of threads. A length is believed only where
// its checksum fits and the file is that long, so no file makes the reader take more memory than
// its own size.
class RecordFile {
 public:
  // Is told of a place where there is no whole record: the message names the file, the record's
  // number and the byte. It may count the messages, and may throw to give up.
  using OnDamage = std::function<void(const std::string& message)>;

  // Opens the file. Throws as InputFile does.
  explicit RecordFile(std::filesystem::path path) : file_(std::move(path)) {}

  // Returns the places of all records, in their order. Reads headers and lengths alone: read()
  // checks the bytes. After damage it goes on at the next header whose checksum fits. Throws
  // Invalid for a file that is compressed as a whole.
  std::vector<Place> index(const OnDamage& on_damage) const;

  // As above, but throws the first message as Invalid.
  std::vector<Place> index() const;

  // Reads the bytes of a record that index() has found; `number` is its number in the index, for
  // messages. Throws Invalid, which names the file, the number and the byte, if the checksum does
  // not fit, or if the file has changed.
  void read(const Place& place, uint64_t number, std::string& bytes) const;

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  std::string where(uint64_t number, uint64_t offset) const;
  uint64_t next_header(uint64_t offset) const;

  InputFile file_;
};

}  // namespace muster::records
