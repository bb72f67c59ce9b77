#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/error.h"
#include "trainer/records/example.h"

using namespace muster;

// A tf.train.Example, without a label map and with one. What is taken can be written and read
// again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const records::LabelMap labels({{1, "person", ""}, {3, "dog", ""}}, "labels");
  static records::ExampleReader reader;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  for (const records::LabelMap* map : {static_cast<const records::LabelMap*>(nullptr), &labels}) {
    records::DetectionExample example, again;
    try {
      reader.read(text, "fuzz", map, example);
    } catch (const Invalid&) {
      continue;
    }
    for (const images::Box& box : example.boxes) {
      if (!(box.ymin >= 0 && box.ymin < box.ymax && box.ymax <= 1)) __builtin_trap();
      if (!(box.xmin >= 0 && box.xmin < box.xmax && box.xmax <= 1)) __builtin_trap();
    }
    reader.read(records::write_example(example, map), "again", map, again);
    if (again.boxes.size() != example.boxes.size() || again.image != example.image) {
      __builtin_trap();
    }
  }
  try {
    records::ClassificationExample example;
    reader.read(text, "fuzz", example);
  } catch (const Invalid&) {
  }
  return 0;
}
