#include <cstddef>
#include <cstdint>
#include <string>

#include "common/error.h"
#include "trainer/records/label_map.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    const std::string text(reinterpret_cast<const char*>(bytes), size);
    const records::LabelMap map = records::LabelMap::parse(text, "fuzz");
    for (const records::LabelMap::Entry& entry : map.entries()) {
      if (map.id_of(entry.name) != entry.id || !map.index_of(entry.id)) __builtin_trap();
    }
  } catch (const Invalid&) {
  }
  return 0;
}
