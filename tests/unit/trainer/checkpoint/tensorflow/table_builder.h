#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/digest.h"
#include "trainer/records/framing.h"

namespace muster::checkpoint::test {

inline std::string varint(uint64_t number) {
  std::string text;
  for (; number >= 0x80; number >>= 7) text += static_cast<char>(number | 0x80);
  return text + static_cast<char>(number);
}

inline std::string fixed(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
  return text;
}

// The content of a block, each key written with what it shares with the one before.
inline std::string block_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string text, before;
  for (const auto& [key, value] : entries) {
    size_t shared = 0;
    while (shared < std::min(key.size(), before.size()) && key[shared] == before[shared]) ++shared;
    text += varint(shared) + varint(key.size() - shared) + varint(value.size()) +
            key.substr(shared) + value;
    before = key;
  }
  return text + fixed(0, 4) + fixed(1, 4);  // one restart, at the beginning
}

// Writes tables in LevelDB's format.
class TableBuilder {
 public:
  // Adds a block, compressed as `type` says; returns its place.
  std::string add(const std::string& content, char type = 0) {
    const std::string place = varint(bytes_.size()) + varint(content.size());
    const std::string whole = content + type;
    bytes_ +=
        whole + fixed(records::mask_crc(crc32c(std::as_bytes(std::span(whole)))), sizeof(uint32_t));
    return place;
  }
  std::string finish(const std::string& index_place) {
    std::string footer = add(block_of({})) + index_place;
    footer.resize(40);
    return bytes_ + footer + fixed(0xdb4775248b80fb57, 8);
  }

 private:
  std::string bytes_;
};

// A table of one block.
inline std::string table_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  TableBuilder builder;
  const std::string place = builder.add(block_of(entries));
  return builder.finish(
      builder.add(block_of({{entries.empty() ? "" : entries.back().first, place}})));
}

}  // namespace muster::checkpoint::test
