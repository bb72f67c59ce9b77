#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/error.h"
#include "trainer/data/images/csv_list.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  spec::ImageCsvSource source;
  source.file = "folder/list.csv";
  if (size > 0 && bytes[0] % 2 == 0) source.classes = {"cat", "dog"};
  try {
    const std::string_view text(reinterpret_cast<const char*>(bytes), size);
    const data::ImageList list = data::parse_csv_list(text, source, "fuzz");
    for (const data::ImageFile& file : list.files) {
      if (file.label < 0 || file.label >= list.label_count) __builtin_trap();
    }
  } catch (const Invalid&) {
  }
  return 0;
}
