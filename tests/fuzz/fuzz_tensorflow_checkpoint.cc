#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/error.h"
#include "tests/unit/trainer/checkpoint/tensorflow/table_builder.h"
#include "trainer/checkpoint/tensorflow/sorted_table.h"
#include "trainer/checkpoint/tensorflow/tensorflow_checkpoint.h"

using namespace muster;

namespace {

void parse_index(std::string_view bytes) {
  try {
    const auto index = checkpoint::TensorflowIndex::parse(bytes, "fuzz");
    for (const auto& [name, variable] : index.variables)
      if (name.empty() || variable.shard < 0 || variable.shard >= index.shards) __builtin_trap();
  } catch (const Invalid&) {
  }
}

}  // namespace

// The bytes as a whole index, and as a block of one, plain and compressed, with the checksum that
// random bytes would never have.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  parse_index(text);
  for (const char compression : {0, 1}) {
    checkpoint::test::TableBuilder table;
    const std::string place = table.add(std::string(text), compression);
    const std::string index = table.add(checkpoint::test::block_of({{"~", place}}));
    parse_index(table.finish(index));
  }
  return 0;
}
