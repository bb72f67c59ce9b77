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
  uint64_t offset = 0;  // offset of its header
  uint64_t length = 0;  // number of its bytes, without header and footer

  bool operator==(const Place&) const = default;
};

// Returns the name of a record for messages: "FILE: record 7 at byte 1234".
std::string name_of(const std::filesystem::path& file, uint64_t number, uint64_t offset);

// A TFRecord file, read at any place and by any number of threads. A length is used only if its
// checksum is right and the file is long enough, so the reader never allocates more memory than the
// file's size.
class RecordFile {
 public:
  // Called for each place without a whole record. The message names the file, the record's number
  // and the byte. The function may throw to give up.
  using OnDamage = std::function<void(const std::string& message)>;

  // Opens the file. Throws the errors of InputFile.
  explicit RecordFile(std::filesystem::path path) : file_(std::move(path)) {}

  // Returns the places of all records, in their order. Reads only headers and lengths: read()
  // checks the bytes. After damage it continues at the next header with a right checksum. Throws
  // Invalid for a file that is compressed as a whole.
  std::vector<Place> index(const OnDamage& on_damage) const;

  // Does the same, but throws the first message as Invalid.
  std::vector<Place> index() const;

  // Reads the bytes of a record that index() has found; `number` is its number in the index, for
  // messages. Throws Invalid, naming the file, the number and the byte, if the checksum is wrong or
  // the file has changed.
  void read(const Place& place, uint64_t number, std::string& bytes) const;

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  uint64_t next_header(uint64_t offset) const;

  InputFile file_;
};

}  // namespace muster::records
