#include "trainer/collective/contribution.h"

#include <algorithm>

#include "common/error.h"

namespace muster::collective {

Note Note::from(const std::string& text) {
  if (text.size() > kMost)
    throw Invalid("a note to the group: expected at most " + std::to_string(kMost) +
                  " bytes, found " + std::to_string(text.size()));
  Note note;
  note.size = static_cast<uint32_t>(text.size());
  std::copy(text.begin(), text.end(), note.bytes.begin());
  return note;
}

std::string Note::text() const {
  return {bytes.data(), std::min<size_t>(size, kMost)};
}

}  // namespace muster::collective
