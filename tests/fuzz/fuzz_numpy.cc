#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/error.h"
#include "trainer/data/tables/numpy_table.h"

using namespace muster;

// What a file says of its size must be true: all cells of a table are read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    const auto table =
        data::parse_numpy(std::string(reinterpret_cast<const char*>(bytes), size), "fuzz");
    std::vector<double> cells(table->rows_of_blocks()[0]);
    for (size_t column = 0; column < table->columns().size() && column < 100; ++column) {
      table->read_numbers(0, column, cells);
      if (table->read_texts(0, column).cells.size() != cells.size()) __builtin_trap();
    }
  } catch (const Invalid&) {
  }
  return 0;
}
