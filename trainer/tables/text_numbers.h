#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::tables {

// Numbers different texts in the order of their first use. It is a hash table with linear probing
// over the texts themselves, which are kept once, in a vector of the caller's.
class TextNumbers {
 public:
  // Returns the place of the text in `texts`, where it is added if it is new. All calls must have
  // the same vector, which nobody else changes.
  int32_t number(std::string_view text, std::vector<std::string>& texts) {
    if (2 * texts.size() >= slots_.size()) grow();
    const auto hash = static_cast<uint32_t>(std::hash<std::string_view>()(text));
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].number >= 0; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == hash && texts[static_cast<size_t>(slots_[at].number)] == text)
        return slots_[at].number;
    slots_[at] = {hash, static_cast<int32_t>(texts.size())};
    texts.emplace_back(text);
    return slots_[at].number;
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    int32_t number = -1;
  };

  void grow() {
    std::vector<Slot> larger(slots_.empty() ? 64 : 4 * slots_.size());
    for (const Slot& slot : slots_) {
      if (slot.number < 0) continue;
      size_t at = slot.hash & (larger.size() - 1);
      while (larger[at].number >= 0) at = (at + 1) & (larger.size() - 1);
      larger[at] = slot;
    }
    slots_ = std::move(larger);
  }

  std::vector<Slot> slots_;  // their number is a power of two
};

}  // namespace muster::tables
